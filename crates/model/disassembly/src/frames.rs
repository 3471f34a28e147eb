//! The frames of x86-64 code that has no unwind info, from its instructions.
//!
//! Compilers leave out unwind info where no exception can pass: LLVM does so for numba's kernels. Yet such code changes the stack pointer by constants,
//! or keeps a frame pointer. So the CFA at each instruction follows from the instructions on all ways to it.

use std::collections::BTreeMap;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use jit_code::{Row, elf_machine};

/// The most bytes of code that are followed.
const LARGEST: usize = 1 << 20;
/// The distance of the CFA from the stack pointer at the entry: the return address.
const ENTRY: i32 = 8;
/// Size of what `push` and `pop` move.
const WORD: i32 = 8;
/// A distance from the CFA beyond this one is no frame.
const FARTHEST: i32 = 1 << 28;

/// The registers that a call preserves, with their DWARF numbers.
const PRESERVED: [(Register, u16); 6] = [
    (Register::RBX, 3),
    (RBP, 6),
    (Register::R12, 12),
    (Register::R13, 13),
    (Register::R14, 14),
    (Register::R15, 15),
];
const RBP: Register = Register::RBP;
const RSP: Register = Register::RSP;
/// The DWARF numbers of the registers that a CFA is computed from.
const FRAME_POINTER: u16 = 6;
const STACK_POINTER: u16 = 7;

/// How to unwind from each instruction of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames(Vec<(u32, Frame)>);

/// The frame from an offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    cfa: (u16, i32),
    saved: Vec<(u16, i32)>,
}

/// What is known before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// The CFA minus the stack pointer.
    stack: Option<i32>,
    /// The CFA minus rbp, if rbp is a frame pointer.
    frame: Option<i32>,
    /// Where each of [`PRESERVED`] is saved, from the CFA.
    saved: [Option<i32>; PRESERVED.len()],
    /// Which of them may have been changed.
    changed: [bool; PRESERVED.len()],
}

impl Frames {
    /// Follows a function from its entry, at its first byte. `machine` is the number in ELF. `None` if it is another one than x86-64, or if the CFA is not
    /// known at each instruction that can be reached.
    ///
    /// Three things are assumed, as of all compilers: callees leave the stack pointer as it was, what is saved stays where it is, and the targets of a
    /// computed jump have the frame of the jump.
    #[must_use]
    pub fn of(machine: u16, code: &[u8]) -> Option<Self> {
        if machine != elf_machine::X86_64 || code.is_empty() || code.len() > LARGEST {
            return None;
        }
        let mut frames: Vec<(u32, Frame)> = Walk::new(code).frames()?.into_iter().collect();
        frames.dedup_by(|next, before| next.1 == before.1);
        Some(Self(frames))
    }

    /// The frames as rows of unwind info.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let rows = self.0.iter().map(|(offset, frame)| {
            let (register, distance) = frame.cfa;
            Row::new(*offset, register, distance).saved(&frame.saved)
        });
        rows.collect()
    }
}

/// The instructions that were reached, and those to go on from.
struct Walk<'c> {
    code: &'c [u8],
    decoder: Decoder<'c>,
    info: InstructionInfoFactory,
    /// By offset.
    reached: BTreeMap<u32, Reached>,
    left: Vec<(u32, State)>,
    /// The state at computed jumps.
    computed: Option<State>,
}

/// An instruction that was reached.
#[derive(Clone, Copy)]
struct Reached {
    /// The state before it.
    state: State,
    /// The offset of the next one.
    next: u32,
}

/// How often the code between what was reached is tried, if there are computed jumps.
const GUESSES: usize = 8;

impl<'c> Walk<'c> {
    fn new(code: &'c [u8]) -> Self {
        Self {
            code,
            decoder: Decoder::with_ip(64, code, 0, DecoderOptions::NONE),
            info: InstructionInfoFactory::new(),
            reached: BTreeMap::new(),
            left: vec![(0, State::ENTRY)],
            computed: None,
        }
    }

    /// The frame from each instruction on. `None` if it is not known everywhere.
    fn frames(mut self) -> Option<BTreeMap<u32, Frame>> {
        while let Some((offset, state)) = self.left.pop() {
            let before = self.reached.get(&offset).map(|reached| reached.state);
            let state = before.map_or(state, |before| before.merged(state));
            if before != Some(state) {
                self.step(offset, state)?;
            }
        }
        let frames = self.reached.iter().map(|(at, reached)| Some((*at, reached.state.frame()?)));
        let mut frames: BTreeMap<u32, Frame> = frames.collect::<Option<_>>()?;
        for _ in 0..GUESSES {
            self.guess();
        }
        for (at, reached) in self.reached {
            if let Some(frame) = reached.state.frame() {
                frames.entry(at).or_insert(frame);
            }
        }
        Some(frames)
    }

    /// What a table of jumps leads to is not known: it is in the code that nothing else leads to.
    fn guess(&mut self) {
        let Some(state) = self.computed else { return };
        let mut end = 0;
        for (at, reached) in &self.reached {
            if *at > end {
                self.left.push((end, state));
            }
            end = end.max(reached.next);
        }
        self.left.push((end, state));
        while let Some((offset, state)) = self.left.pop() {
            if !self.reached.contains_key(&offset) {
                let _ = self.step(offset, state);
            }
        }
    }

    /// Decodes the instruction at an offset, if that is in the code, and notes where it leads to. `None` if it is none.
    fn step(&mut self, offset: u32, mut state: State) -> Option<()> {
        let at = usize::try_from(offset).ok().filter(|at| *at < self.code.len());
        // One that leaves the code is a call at the end, or one that does not return.
        let Some(at) = at else { return Some(()) };
        self.decoder.set_position(at).ok()?;
        self.decoder.set_ip(offset.into());
        let instruction = self.decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let next = offset.checked_add(u32::try_from(instruction.len()).ok()?)?;
        self.reached.insert(offset, Reached { state, next });
        state.after(&instruction, &mut self.info);
        let flow = instruction.flow_control();
        let is_branch = matches!(
            flow,
            FlowControl::UnconditionalBranch
                | FlowControl::ConditionalBranch
                | FlowControl::XbeginXabortXend
        );
        if is_branch && instruction.op0_kind() == OpKind::NearBranch64 {
            let target = u32::try_from(instruction.near_branch64()).ok();
            self.left.extend(target.map(|target| (target, state)));
        }
        match flow {
            FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::Exception
            | FlowControl::UnconditionalBranch => {}
            FlowControl::IndirectBranch => {
                self.computed = Some(self.computed.map_or(state, |other| other.merged(state)));
            }
            FlowControl::Next
            | FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::ConditionalBranch
            | FlowControl::XbeginXabortXend => self.left.push((next, state)),
        }
        Some(())
    }
}

impl State {
    const ENTRY: Self = Self {
        stack: Some(ENTRY),
        frame: None,
        saved: [None; PRESERVED.len()],
        changed: [false; PRESERVED.len()],
    };

    /// What is known if both ways may have been taken.
    fn merged(self, other: Self) -> Self {
        let same = |a: Option<i32>, b| a.filter(|_| a == b);
        let mut merged = self;
        merged.stack = same(self.stack, other.stack);
        merged.frame = same(self.frame, other.frame);
        for (saved, other) in merged.saved.iter_mut().zip(other.saved) {
            *saved = same(*saved, other);
        }
        for (changed, other) in merged.changed.iter_mut().zip(other.changed) {
            *changed |= other;
        }
        merged
    }

    fn frame(&self) -> Option<Frame> {
        let by_stack = self.stack.map(|distance| (STACK_POINTER, distance));
        let cfa = self.frame.map(|distance| (FRAME_POINTER, distance)).or(by_stack)?;
        let saved = PRESERVED.iter().zip(self.saved);
        let saved = saved.filter_map(|((_, number), place)| Some((*number, place?))).collect();
        Some(Frame { cfa, saved })
    }

    /// Applies an instruction.
    fn after(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        let before = *self;
        let first = instruction.op0_register();
        let immediate = || match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
                i32::try_from(instruction.immediate(1).cast_signed()).ok()
            }
            _ => None,
        };
        for used in info.info(instruction).used_registers() {
            if matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::ReadWrite
                    | OpAccess::CondWrite
                    | OpAccess::ReadCondWrite
            ) {
                self.write(used.register().full_register());
            }
        }
        match instruction.mnemonic() {
            // The callee returns.
            Mnemonic::Call => self.stack = before.stack,
            Mnemonic::Push | Mnemonic::Pushfq => {
                self.stack = add(before.stack, Some(WORD));
                if let (OpKind::Register, Some(place)) = (instruction.op0_kind(), self.stack) {
                    self.save(first, place.saturating_neg());
                }
            }
            Mnemonic::Pop | Mnemonic::Popfq => {
                self.stack = add(before.stack, Some(-WORD)).filter(|_| first != RSP);
                if let Some(place) = before.stack {
                    self.restore(first, place.saturating_neg());
                }
            }
            Mnemonic::Sub if first == RSP => self.stack = add(before.stack, immediate()),
            Mnemonic::Add if first == RSP => {
                self.stack = add(before.stack, immediate().and_then(i32::checked_neg));
            }
            Mnemonic::Lea if matches!(first, RSP | RBP) => {
                let place = before.place(instruction).and_then(i32::checked_neg);
                self.set(first, place);
            }
            Mnemonic::Mov if matches!(first, RSP | RBP) => match instruction.op1_kind() {
                OpKind::Register => {
                    self.set(first, before.distance(instruction.op1_register()));
                }
                OpKind::Memory => {
                    if let Some(place) = before.place(instruction) {
                        self.restore(first, place);
                    }
                }
                _ => {}
            },
            Mnemonic::Mov => match (instruction.op0_kind(), instruction.op1_kind()) {
                (OpKind::Memory, OpKind::Register) => {
                    if let Some(place) = before.place(instruction) {
                        self.save(instruction.op1_register(), place);
                    }
                }
                (OpKind::Register, OpKind::Memory) => {
                    if let Some(place) = before.place(instruction) {
                        self.restore(first, place);
                    }
                }
                _ => {}
            },
            Mnemonic::Leave => {
                self.stack = add(before.frame, Some(-WORD));
                if let Some(place) = before.frame {
                    self.restore(RBP, place.saturating_neg());
                }
            }
            _ => {}
        }
    }

    /// The CFA minus a register.
    fn distance(&self, register: Register) -> Option<i32> {
        match register {
            RSP => self.stack,
            RBP => self.frame,
            _ => None,
        }
    }

    fn set(&mut self, register: Register, distance: Option<i32>) {
        match register {
            RSP => self.stack = distance,
            _ => self.frame = distance,
        }
    }

    /// The operand in memory, from the CFA.
    fn place(&self, instruction: &Instruction) -> Option<i32> {
        if instruction.memory_index() != Register::None
            || instruction.segment_prefix() != Register::None
        {
            return None;
        }
        let displacement = i32::try_from(instruction.memory_displacement64().cast_signed()).ok()?;
        let base = self.distance(instruction.memory_base())?;
        add(Some(displacement), base.checked_neg())
    }

    /// A register gets a value that is not followed.
    fn write(&mut self, register: Register) {
        match register {
            RSP => self.stack = None,
            RBP => self.frame = None,
            _ => {}
        }
        if let Some(at) = PRESERVED.iter().position(|(known, _)| *known == register)
            && let Some(changed) = self.changed.get_mut(at)
        {
            *changed = true;
        }
    }

    /// A register is stored at a distance from the CFA: saved, if it still has the caller's value.
    fn save(&mut self, register: Register, place: i32) {
        let at = PRESERVED.iter().position(|(known, _)| *known == register);
        if let Some((at, false)) = at.and_then(|at| Some((at, *self.changed.get(at)?)))
            && let Some(saved @ None) = self.saved.get_mut(at)
            && place < -ENTRY
        {
            *saved = Some(place);
        }
    }

    /// A register is loaded from a distance from the CFA: it has the caller's value again if it was saved there.
    fn restore(&mut self, register: Register, place: i32) {
        let at = PRESERVED.iter().position(|(known, _)| *known == register);
        if let Some(at) = at
            && let (Some(saved), Some(changed)) = (self.saved.get_mut(at), self.changed.get_mut(at))
            && *saved == Some(place)
        {
            (*saved, *changed) = (None, false);
        }
    }
}

fn add(a: Option<i32>, b: Option<i32>) -> Option<i32> {
    a?.checked_add(b?).filter(|sum| (-FARTHEST..FARTHEST).contains(sum))
}
