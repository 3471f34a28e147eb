//! A function's stack frame on x86-64, and its call frame information at every instruction.
//!
//! Cranelift keeps `rbp` as a frame pointer in every function and describes the frame up to the
//! end of the prologue only, which is wrong for a sample on the last `ret`. Here the epilogue is
//! described as well, and on demand the frame pointer is taken out, as a compiler does that gives
//! `rbp` to the register allocator: such code can be unwound by CFI alone.

use cranelift_codegen::CompiledCode;
use cranelift_codegen::ir::SourceLoc;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::isa::unwind::UnwindInst;
use gimli::write::CallFrameInstruction as Cfi;
use gimli::{Register, X86_64};

/// What `rbp` is in generated code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The frame pointer, everywhere.
    Pointer,
    /// A register like any other: saved, then overwritten with what is no address.
    None,
}

/// The final bytes and their CFI, by offset.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) instructions: Vec<(u32, Cfi)>,
}

/// `push rbp`
const PUSH: [u8; 1] = [0x55];
/// `mov rbp, rsp`
const SET: [u8; 3] = [0x48, 0x89, 0xe5];
/// `not rbp`: of the length of [`SET`]; a saved user-space address becomes a non-canonical one.
const SPOIL: [u8; 3] = [0x48, 0xf7, 0xd5];
/// `mov rsp, rbp`
const RESET: [u8; 3] = [0x48, 0x89, 0xec];
/// A no-operation of the length of [`RESET`].
const NOTHING: [u8; 3] = [0x0f, 0x1f, 0x00];
/// `pop rbp; ret`
const LEAVE: [u8; 2] = [0x5d, 0xc3];
/// The return address and the saved `rbp`.
const SETUP: i32 = 16;

/// Describes the frame and, for [`FrameKind::None`], takes the frame pointer out.
///
/// Of the code's instructions only its first and those at `exit` are looked at: the generator makes
/// one return (see `codegen`), whose source location that is. Whatever does not look exactly as
/// expected is refused.
pub(crate) fn apply(
    isa: &dyn TargetIsa,
    code: &CompiledCode,
    exit: SourceLoc,
    kind: FrameKind,
) -> Result<Frame, &'static str> {
    let mut bytes = code.buffer.data().to_vec();
    let layout = code.buffer.frame_layout().ok_or("no frame layout")?;
    let below = i32::try_from(layout.frame_to_fp_offset).map_err(|_| "a huge frame")?;

    if !bytes.starts_with(&[&PUSH[..], &SET[..]].concat()) {
        return Err("no push and mov at the start");
    }
    let pushed = PUSH.len();
    let set = pushed + SET.len();
    let allocated = set + adjustment(&bytes[set..], 0xec, below)?;
    let mut returns = code.buffer.get_srclocs_sorted().iter().filter(|range| range.loc == exit);
    let (Some(last), None) = (returns.next(), returns.next()) else {
        return Err("not one return");
    };
    let end = last.end as usize;
    let reset = end.checked_sub(RESET.len() + LEAVE.len()).ok_or("too short")?;
    if bytes.get(reset..end).ok_or("too short")? != [&RESET[..], &LEAVE[..]].concat() {
        return Err("no mov, pop and ret at the end");
    }
    let released = reset;
    check_release(&bytes[allocated..released], below)?;
    let popped = reset + RESET.len() + 1;
    // Behind the epilogue there may be more of the body, and constants.
    let goes_on = end < bytes.len();

    let saves = saves(isa, code)?;
    // The places below a released frame are no longer the function's: a copy of the stack, as perf
    // takes it for `--call-graph dwarf`, does not have them. The registers have their values again.
    let restored: Vec<_> = saves
        .iter()
        .filter_map(|(_, save)| match save {
            Cfi::Offset(register, _) => Some((released, Cfi::SameValue(*register))),
            _ => None,
        })
        .collect();
    let mut instructions =
        vec![(pushed, Cfi::CfaOffset(SETUP)), (pushed, Cfi::Offset(X86_64::RBP, -SETUP))];
    match kind {
        FrameKind::Pointer => {
            instructions.push((set, Cfi::CfaRegister(X86_64::RBP)));
            instructions.extend(saves);
            instructions.push((released, Cfi::RememberState));
            instructions.extend(restored);
            instructions.push((popped, Cfi::Cfa(X86_64::RSP, 8)));
        }
        FrameKind::None => {
            bytes[pushed..set].copy_from_slice(&SPOIL);
            bytes[reset..reset + RESET.len()].copy_from_slice(&NOTHING);
            if below > 0 {
                instructions.push((allocated, Cfi::CfaOffset(SETUP + below)));
            }
            instructions.extend(saves);
            instructions.push((released, Cfi::RememberState));
            if below > 0 {
                instructions.push((released, Cfi::CfaOffset(SETUP)));
            }
            instructions.extend(restored);
            instructions.push((popped, Cfi::CfaOffset(8)));
        }
    }
    // From here on the register holds the caller's value again.
    instructions.push((popped, Cfi::SameValue(X86_64::RBP)));
    if goes_on {
        instructions.push((end, Cfi::RestoreState));
    }
    let instructions = instructions.into_iter().map(|(at, cfi)| (at as u32, cfi)).collect();
    Ok(Frame { bytes, instructions })
}

/// The length of `sub rsp, n` (`modrm` 0xec) or `add rsp, n` (0xc4) at the start of `bytes`.
fn adjustment(bytes: &[u8], modrm: u8, n: i32) -> Result<usize, &'static str> {
    if n == 0 {
        return Ok(0);
    }
    match *bytes {
        [0x48, 0x83, m, by, ..] if m == modrm && i32::from(by.cast_signed()) == n => Ok(4),
        [0x48, 0x81, m, a, b, c, d, ..] if m == modrm && i32::from_le_bytes([a, b, c, d]) == n => {
            Ok(7)
        }
        _ => Err("the stack pointer is not adjusted by the frame's size"),
    }
}

/// Makes sure that `body` ends with the frame's release.
fn check_release(body: &[u8], below: i32) -> Result<(), &'static str> {
    let found = [0, 4, 7].into_iter().any(|length| {
        let start = body.len().checked_sub(length);
        start.is_some_and(|start| adjustment(&body[start..], 0xc4, below) == Ok(length))
    });
    if found { Ok(()) } else { Err("the frame is not released at the end") }
}

/// Where the callee-saved registers lie, once the prologue has stored them.
fn saves(isa: &dyn TargetIsa, code: &CompiledCode) -> Result<Vec<(usize, Cfi)>, &'static str> {
    let mut downward = 0;
    let mut saves = Vec::new();
    for (at, inst) in &code.buffer.unwind_info {
        match inst {
            UnwindInst::DefineNewFrame { offset_downward_to_clobbers, .. } => {
                downward =
                    i32::try_from(*offset_downward_to_clobbers).map_err(|_| "a huge frame")?;
            }
            UnwindInst::SaveReg { clobber_offset, reg } => {
                let number = isa
                    .map_regalloc_reg_to_dwarf((*reg).into())
                    .map_err(|_| "a saved register that DWARF has no number for")?;
                let offset = i32::try_from(*clobber_offset).map_err(|_| "a huge frame")?;
                let place = Cfi::Offset(Register(number), offset - downward - SETUP);
                saves.push((*at as usize, place));
            }
            UnwindInst::PushFrameRegs { .. } => {}
            _ => return Err("unwind information of another kind"),
        }
    }
    Ok(saves)
}
