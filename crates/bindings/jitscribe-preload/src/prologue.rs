//! Finds where a code without unwind info sets up its frame pointer.
#![forbid(unsafe_code)]

use jitscribe::Unwind;

/// Number of bytes of a code that are searched for its prologue.
const WITHIN: usize = 64;
/// The same for V8's functions: a copy of its interpreter's entry checks flags first.
const WITHIN_V8: usize = 256;
/// Number of bytes of V8's baseline code that are searched for the call of its prologue.
const CALLED_WITHIN: usize = 32;

/// The instructions that set up a frame pointer.
#[cfg(target_arch = "x86_64")]
const PROLOGUES: [[u8; 4]; 2] = [[0x55, 0x48, 0x89, 0xe5], [0x55, 0x48, 0x8b, 0xec]];
#[cfg(target_arch = "aarch64")]
const PROLOGUES: [[u8; 8]; 1] = [[0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91]];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const PROLOGUES: [[u8; 1]; 0] = [];

/// Instructions begin at multiples of this.
const UNIT: usize = if cfg!(target_arch = "aarch64") { 4 } else { 1 };
/// `paciasp`, which signs the return address. Key B (`pacibsp`) cannot be described here.
const SIGN: [u8; 4] = [0x3f, 0x23, 0x03, 0xd5];

/// Unwind info for code without any: by the frame pointer, if the code sets one up.
pub(crate) fn frame_of(name: &[u8], code: &[u8]) -> Option<Unwind<'static>> {
    let tier = v8_tier(name);
    let within = if tier.is_some() { WITHIN_V8 } else { WITHIN };
    let near = code.get(..within).unwrap_or(code);
    let is_prologue = |at: &usize| {
        near.get(*at..)
            .is_some_and(|rest| PROLOGUES.iter().any(|prologue| rest.starts_with(prologue)))
    };
    let called = || (tier == Some(b'^')).then(|| called_prologue(code)).flatten();
    let at = called().or_else(|| (0..near.len()).step_by(UNIT).find(is_prologue))?;
    let signed = cfg!(target_arch = "aarch64")
        && at.checked_sub(SIGN.len()).and_then(|before| code.get(before..at)) == Some(&SIGN);
    Some(Unwind::FramePointer { prologue: u32::try_from(at).ok()?, signed })
}

/// V8's tier of a function, from the name that V8 gives its code: `JS:^name file:line:column`. All tiers keep a frame
/// pointer.
fn v8_tier(name: &[u8]) -> Option<u8> {
    let colon = name.iter().position(|&byte| byte == b':')?;
    let kind = name.get(..colon)?;
    let tier = *name.get(colon + 1)?;
    let is_kind = [&b"JS"[..], b"LazyCompile", b"Function", b"Script", b"Eval"].contains(&kind);
    (is_kind && b"~^+*".contains(&tier)).then_some(tier)
}

/// V8's baseline code loads some arguments, and calls a function that sets up its frame, including the frame pointer. After
/// the call, the state is as behind a prologue in its place that is one byte shorter than the call.
#[cfg(target_arch = "x86_64")]
fn called_prologue(code: &[u8]) -> Option<usize> {
    let near = code.get(..CALLED_WITHIN).unwrap_or(code);
    let mut at = 0;
    loop {
        at += match near.get(at..)? {
            // mov r32, imm32
            [0xb8..=0xbf, ..] => 5,
            [0x41, 0xb8..=0xbf, ..] => 6,
            // mov r64, imm64
            [0x48 | 0x49, 0xb8..=0xbf, ..] => 10,
            // call rel32; call [r13 + disp32]
            [0xe8, ..] | [0x41, 0xff, 0x95, ..] => return Some(at),
            _ => return None,
        };
    }
}

/// Not known for other machines.
#[cfg(not(target_arch = "x86_64"))]
fn called_prologue(code: &[u8]) -> Option<usize> {
    let _ = (code, CALLED_WITHIN);
    None
}
