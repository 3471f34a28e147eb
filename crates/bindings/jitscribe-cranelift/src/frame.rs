//! The frame at each instruction.
//!
//! Cranelift describes how a prologue sets up the frame with `UnwindInst`. Its own encoder of `.eh_frame`
//! (`cranelift_codegen::isa::unwind::systemv`) interprets them in the same way.

use cranelift_codegen::CompiledCode;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::isa::unwind::UnwindInst;
use jitscribe::Row;

/// The state of the frame from an offset on; see [`Row`].
#[derive(Clone, Debug)]
struct State {
    offset: u32,
    cfa: (u16, i32),
    saved: Vec<(u16, i32)>,
    signed: bool,
}

/// The states of a frame, by offset.
#[derive(Clone, Debug)]
pub(crate) struct Frame(Vec<State>);

/// The parts of a frame that depend on the machine.
struct Machine {
    stack_pointer: u16,
    frame_pointer: u16,
    /// The register with the return address. Once saved, it is eight bytes above the saved frame pointer.
    link: Option<u16>,
    /// Offset of the CFA from the stack pointer before anything is pushed.
    at_entry: i32,
    /// The ranges of offsets in which the frame has been torn down.
    epilogues: fn(&[u8]) -> Vec<(u32, u32)>,
}

const X86_64: Machine = Machine {
    stack_pointer: 7,
    frame_pointer: 6,
    link: None,
    at_entry: 8,
    epilogues: epilogues_x86_64,
};

const AARCH64: Machine = Machine {
    stack_pointer: 31,
    frame_pointer: 29,
    link: Some(30),
    at_entry: 0,
    epilogues: epilogues_aarch64,
};

impl Frame {
    /// `None` if the frame is not known.
    pub(crate) fn of(isa: &dyn TargetIsa, compiled: &CompiledCode) -> Option<Self> {
        // Without unwind info, a function with a frame looks the same as one without.
        if !isa.flags().unwind_info() {
            return None;
        }
        let machine = match isa.name() {
            "x64" => X86_64,
            "aarch64" => AARCH64,
            _ => return None,
        };
        let bytes = compiled.code_buffer();
        let mut made = Self::made(isa, compiled, &machine)?;
        let body = made.last()?;
        if body.cfa.0 == machine.frame_pointer && !body.signed {
            let body = body.clone();
            for (gone, end) in (machine.epilogues)(bytes) {
                if made.last().is_some_and(|last| last.offset >= gone) {
                    continue;
                }
                let cfa = (machine.stack_pointer, machine.at_entry);
                made.push(State { offset: gone, cfa, saved: Vec::new(), signed: false });
                made.push(State { offset: end, ..body.clone() });
            }
        }
        let size = u32::try_from(bytes.len()).ok()?;
        made.retain(|state| state.offset < size);
        // The state at offset 0 is the one that a call leaves, which is the default without a row.
        Some(Self(made.into_iter().filter(|state| state.offset > 0).collect()))
    }

    /// The states that the prologue creates, the first at offset 0.
    fn made(isa: &dyn TargetIsa, compiled: &CompiledCode, machine: &Machine) -> Option<Vec<State>> {
        let number = |reg| isa.map_regalloc_reg_to_dwarf(reg).ok();
        let cfa = (machine.stack_pointer, machine.at_entry);
        let mut states = vec![State { offset: 0, cfa, saved: Vec::new(), signed: false }];
        let mut downward = 0;
        for (offset, inst) in &compiled.buffer.unwind_info {
            let mut state = State { offset: *offset, ..states.last()?.clone() };
            match *inst {
                UnwindInst::PushFrameRegs { offset_upward_to_caller_sp } => {
                    let size = i32::try_from(offset_upward_to_caller_sp).ok()?;
                    state.cfa = (machine.stack_pointer, size);
                    state.saved.push((machine.frame_pointer, -size));
                    state.saved.extend(machine.link.map(|link| (link, 8 - size)));
                }
                UnwindInst::DefineNewFrame {
                    offset_upward_to_caller_sp,
                    offset_downward_to_clobbers,
                } => {
                    let upward = i32::try_from(offset_upward_to_caller_sp).ok()?;
                    state.cfa = (machine.frame_pointer, upward);
                    downward =
                        i32::try_from(offset_downward_to_clobbers).ok()?.checked_add(upward)?;
                }
                // The CFA is computed from the frame pointer.
                UnwindInst::StackAlloc { .. } => {}
                UnwindInst::SaveReg { clobber_offset, reg } => {
                    let above = i32::try_from(clobber_offset).ok()?;
                    state.saved.push((number(reg.into())?, above.checked_sub(downward)?));
                }
                UnwindInst::Aarch64SetPointerAuth { return_addresses } => {
                    state.signed = return_addresses;
                }
                UnwindInst::RegStackOffset { .. } => return None,
            }
            states.pop_if(|last| last.offset == state.offset);
            states.push(state);
        }
        Some(states)
    }

    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        self.0.iter().map(State::row).collect()
    }
}

impl State {
    fn row(&self) -> Row<'_> {
        Row::new(self.offset, self.cfa.0, self.cfa.1).saved(&self.saved).signed(self.signed)
    }
}

/// `mov rsp, rbp; pop rbp`, followed by a `ret`: the frame is gone at the `ret`.
///
/// This searches the plain bytes, without knowing where instructions begin. A match inside of another
/// instruction does no harm: a row matters only at an offset where an instruction begins, and an
/// instruction that begins with the byte of a `ret` is a `ret`.
fn epilogues_x86_64(code: &[u8]) -> Vec<(u32, u32)> {
    const LEAVE: [u8; 4] = [0x48, 0x89, 0xec, 0x5d];
    const RET: u8 = 0xc3;
    let found = |(at, bytes): (usize, &[u8])| {
        let gone = at + LEAVE.len();
        (bytes.starts_with(&LEAVE) && bytes.ends_with(&[RET]))
            .then_some((gone as u32, gone as u32 + 1))
    };
    code.windows(LEAVE.len() + 1).enumerate().filter_map(found).collect()
}

/// `ldp x29, x30, [sp], #16; ret`.
fn epilogues_aarch64(code: &[u8]) -> Vec<(u32, u32)> {
    const LEAVE: [u8; 8] = [0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6];
    let starts = (0..code.len().saturating_sub(LEAVE.len() - 1)).step_by(4);
    let found = starts.filter(|start| code[*start..].starts_with(&LEAVE));
    found.map(|start| (start as u32 + 4, start as u32 + 8)).collect()
}
