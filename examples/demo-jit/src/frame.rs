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
use unwind_info::{Machine, Row};

/// What `rbp` is in generated code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The frame pointer, everywhere.
    Pointer,
    /// A register like any other: saved, then overwritten with what is no address.
    None,
}

/// The final bytes and their CFI.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    /// By offset, ascending.
    pub(crate) rows: Vec<FrameRow>,
}

/// The state of the frame from an offset on; see [`Row`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameRow {
    offset: u32,
    cfa: (u16, i32),
    saved: Vec<(u16, i32)>,
}

impl FrameRow {
    pub(crate) fn borrow(&self) -> Row<'_> {
        Row::new(self.offset, self.cfa.0, self.cfa.1).saved(&self.saved)
    }
}

/// What the code is for.
pub(crate) const MACHINE: Machine = Machine::X86_64;
const RSP: u16 = MACHINE.stack_pointer();
const RBP: u16 = MACHINE.frame_pointer();

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
/// Of the code's instructions only its first and those at the exit are looked at: the generator makes
/// one return (see `codegen`), whose source location that is. Whatever does not look exactly as
/// expected is refused.
pub(crate) fn apply(
    isa: &dyn TargetIsa,
    code: &CompiledCode,
    is_exit: impl Fn(SourceLoc) -> bool,
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
    let mut returns = code.buffer.get_srclocs_sorted().iter().filter(|range| is_exit(range.loc));
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

    // Where the frame is whole, its CFA from there on, and that where it has been released.
    let (made, inside, outside) = match kind {
        FrameKind::Pointer => (set, (RBP, SETUP), (RBP, SETUP)),
        FrameKind::None => {
            bytes[pushed..set].copy_from_slice(&SPOIL);
            bytes[reset..reset + RESET.len()].copy_from_slice(&NOTHING);
            (allocated, (RSP, SETUP + below), (RSP, SETUP))
        }
    };
    let pushed_rbp = vec![(RBP, -SETUP)];
    let mut saved = pushed_rbp.clone();
    let mut rows = Rows::default();
    rows.push(pushed, (RSP, SETUP), &saved);
    rows.push(made, inside, &saved);
    for (at, save) in saves(isa, code)? {
        saved.push(save);
        rows.push(at, inside, &saved);
    }
    // The places below a released frame are no longer the function's: a copy of the stack, as perf
    // takes it for `--call-graph dwarf`, does not have them. The registers have their values again.
    rows.push(released, outside, &pushed_rbp);
    rows.push(popped, (RSP, 8), &[]);
    if goes_on {
        rows.push(end, inside, &saved);
    }
    Ok(Frame { bytes, rows: rows.0 })
}

/// Rows in the making.
#[derive(Default)]
struct Rows(Vec<FrameRow>);

impl Rows {
    /// Of several states at one offset the last holds.
    fn push(&mut self, offset: usize, cfa: (u16, i32), saved: &[(u16, i32)]) {
        let row = FrameRow { offset: offset as u32, cfa, saved: saved.to_vec() };
        self.0.pop_if(|last| last.offset == row.offset);
        self.0.push(row);
    }
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

/// A register, and how far from the CFA it lies.
type Save = (u16, i32);

/// Where the callee-saved registers lie, each from the offset on at which the prologue has stored it.
fn saves(isa: &dyn TargetIsa, code: &CompiledCode) -> Result<Vec<(usize, Save)>, &'static str> {
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
                saves.push((*at as usize, (number, offset - downward - SETUP)));
            }
            UnwindInst::PushFrameRegs { .. } => {}
            _ => return Err("unwind information of another kind"),
        }
    }
    Ok(saves)
}
