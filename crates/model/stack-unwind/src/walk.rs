//! From frame to frame.

use std::rc::Rc;

use gimli::{CfaRule, RegisterRule};

use crate::expression::evaluate;
use crate::registers::register::{RBP, RIP, RSP};
use crate::tables::{Row, Tables};
use crate::{End, Registers, StackCopy};

/// Number of frames behind which unwinding ends. perf copies at most 64 KiB of a stack: 4,096 frames of two words.
const MOST: usize = 4096;

/// libunwind guesses no frame that is further up than this.
const FARTHEST: u64 = 0x4000;

/// What is guessed of code that no table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// That it keeps a frame pointer, in whatever memory it is, unless [`Mappings::is_frameless`] knows better.
    FramePointer,
    /// What perf shows, which unwinds by libunwind 1.6: the same, but only in files that have tables for other code. Of the frame above,
    /// it assumes that its stack pointer is 16 bytes above the one of the frame that was guessed, so a guessed frame of another size is
    /// followed only by frames that keep a frame pointer.
    AsPerf,
}

/// What is mapped at an address.
#[derive(Clone, Debug)]
pub enum Mapped {
    /// No file, or nothing.
    NoFile,
    /// A file without tables, or one that cannot be read.
    NoTables,
    /// A file with tables.
    File {
        /// Its tables.
        tables: Rc<Tables>,
        /// How far its addresses in the process are above those in the file.
        bias: u64,
    },
}

/// What was mapped at the time of a sample.
pub trait Mappings {
    /// What was mapped at this address.
    fn at(&mut self, address: u64) -> Mapped;

    /// Whether the code at `address`, which no table describes, has no frame of its own if `word` is the word at the stack pointer: then that is
    /// its return address. It is asked about the innermost frame, for [`Guess::FramePointer`].
    fn is_frameless(&mut self, _address: u64, _word: u64) -> bool {
        false
    }
}

/// Finds the frames of a stack, innermost first: the instruction pointer, and then the address of each call's last byte, as perf has them
/// (or, above a signal handler's frame, the address of the instruction that was interrupted). Returns why the stack ends.
pub fn unwind(
    registers: Registers,
    stack: StackCopy<'_>,
    mappings: &mut impl Mappings,
    guess: Guess,
    frames: &mut Vec<u64>,
) -> End {
    frames.clear();
    match Frame::innermost(registers, stack) {
        Some(frame) => walk(frame, stack, mappings, guess, frames, &mut |_, _| {}),
        None => End::Unknown,
    }
}

/// How a stack ends by either guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BothEnds {
    /// By [`Guess::FramePointer`].
    pub end: End,
    /// By [`Guess::AsPerf`].
    pub as_perf: End,
    /// The outermost frame by [`Guess::AsPerf`].
    pub outermost_as_perf: Option<u64>,
}

/// Finds the frames of a stack by [`Guess::FramePointer`], and how it ends by [`Guess::AsPerf`]. What is below the first guess is walked
/// once.
pub fn unwind_both(
    registers: Registers,
    stack: StackCopy<'_>,
    mappings: &mut impl Mappings,
    frames: &mut Vec<u64>,
) -> BothEnds {
    frames.clear();
    let Some(frame) = Frame::innermost(registers, stack) else {
        return BothEnds { end: End::Unknown, as_perf: End::Unknown, outermost_as_perf: None };
    };
    let mut first_guessed = None;
    let as_perf = walk(frame, stack, mappings, Guess::AsPerf, frames, &mut |frame, below| {
        first_guessed.get_or_insert((*frame, below));
    });
    let outermost_as_perf = frames.last().copied();
    let end = match first_guessed {
        Some((frame, below)) => {
            frames.truncate(below);
            walk(frame, stack, mappings, Guess::FramePointer, frames, &mut |_, _| {})
        }
        None => as_perf,
    };
    BothEnds { end, as_perf, outermost_as_perf }
}

/// A frame that was reached.
#[derive(Clone, Copy)]
struct Frame {
    address: u64,
    /// What the frame above is known to be beyond.
    cfa: u64,
    registers: Registers,
}

impl Frame {
    fn innermost(registers: Registers, stack: StackCopy<'_>) -> Option<Self> {
        let address = registers.get(RIP)?;
        let cfa = registers.get(RSP).unwrap_or(stack.address);
        Some(Self { address, cfa, registers })
    }
}

/// Adds a frame and those above it. Before each guess, `guesses` gets the frame and the number of frames below it.
fn walk(
    mut frame: Frame,
    stack: StackCopy<'_>,
    mappings: &mut impl Mappings,
    guess: Guess,
    frames: &mut Vec<u64>,
    guesses: &mut impl FnMut(&Frame, usize),
) -> End {
    loop {
        let below = frames.len();
        frames.push(frame.address);
        if frames.len() >= MOST {
            return End::TooMany;
        }
        let step = match described(frame.address, mappings) {
            Described::By(tables, row) => follow(&tables, &row, &frame.registers, stack),
            Described::Not(nothing) => {
                guesses(&frame, below);
                match nothing.filter(|_| guess == Guess::AsPerf) {
                    Some(end) => Err(end),
                    None => match frameless(&frame, below, stack, mappings, guess) {
                        Some(step) => Ok(step),
                        None => guessed(frame.cfa, &frame.registers, stack, guess),
                    },
                }
            }
        };
        let step = match step {
            Ok(step) => step,
            Err(end) => return end,
        };
        let Some(caller) = step.registers.get(RIP).filter(|caller| *caller != 0) else {
            return End::NoReturnAddress;
        };
        let next = if step.is_signal { caller } else { caller.wrapping_sub(1) };
        if next == frame.address && step.cfa == frame.cfa {
            return End::SameFrame;
        }
        frame = Frame { address: next, cfa: step.cfa, registers: step.registers };
    }
}

/// A frame's caller.
struct Step {
    registers: Registers,
    cfa: u64,
    is_signal: bool,
}

/// What describes an address.
enum Described {
    By(Rc<Tables>, Rc<Row>),
    /// No table. Inside is why there is none, if the file has no tables at all.
    Not(Option<End>),
}

fn described(address: u64, mappings: &mut impl Mappings) -> Described {
    match mappings.at(address) {
        Mapped::File { tables, bias } => match tables.row(address.wrapping_sub(bias)) {
            Some(row) => Described::By(tables, row),
            None => Described::Not(None),
        },
        Mapped::NoFile => Described::Not(Some(End::NoFile { address })),
        Mapped::NoTables => Described::Not(Some(End::NoTables { address })),
    }
}

/// The caller of an innermost function that has no frame.
fn frameless(
    frame: &Frame,
    below: usize,
    stack: StackCopy<'_>,
    mappings: &mut impl Mappings,
    guess: Guess,
) -> Option<Step> {
    if below > 0 || guess == Guess::AsPerf {
        return None;
    }
    let word = stack.word(frame.cfa).ok()?;
    if !mappings.is_frameless(frame.address, word) {
        return None;
    }
    let mut registers = frame.registers;
    let cfa = frame.cfa.wrapping_add(8);
    registers.set(RIP, Some(word));
    registers.set(RSP, Some(cfa));
    Some(Step { registers, cfa, is_signal: false })
}

/// Takes the frame pointer for one.
fn guessed(
    cfa: u64,
    registers: &Registers,
    stack: StackCopy<'_>,
    guess: Guess,
) -> Result<Step, End> {
    let pointer = registers.get(RBP).ok_or(End::Unknown)?;
    if pointer == 0 {
        return Err(End::NoFramePointer);
    }
    let is_near =
        pointer >= cfa && (guess == Guess::FramePointer || pointer.wrapping_sub(cfa) <= FARTHEST);
    let saved = stack.word(pointer);
    if !is_near {
        // Beyond the copy, it may well be one.
        return Err(saved.err().filter(|_| pointer >= cfa).unwrap_or(End::BadFramePointer));
    }
    let mut caller = Registers::default();
    caller.set(RBP, Some(saved?));
    caller.set(RIP, Some(stack.word(pointer.wrapping_add(8))?));
    let above = match guess {
        Guess::FramePointer => pointer.wrapping_add(16),
        Guess::AsPerf => cfa.wrapping_add(16),
    };
    caller.set(RSP, Some(above));
    Ok(Step { registers: caller, cfa: above, is_signal: false })
}

/// Applies a row of the tables.
fn follow(
    tables: &Tables,
    row: &Row,
    registers: &Registers,
    stack: StackCopy<'_>,
) -> Result<Step, End> {
    if row.is_bottom() {
        return Err(End::Bottom);
    }
    let computed = |expression, first| {
        evaluate(tables, row.kind, row.encoding, expression, first, registers, stack)
    };
    let cfa = match &row.cfa {
        CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(register.0).ok_or(End::Unknown)?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => computed(expression, None)?,
    };
    let mut caller = Registers::default();
    for (number, rule) in (0..).zip(&row.registers) {
        let value = match rule {
            // The caller's stack pointer is the CFA, unless the table has it elsewhere.
            None if number == RSP => Ok(cfa),
            None | Some(RegisterRule::SameValue) => registers.get(number).ok_or(End::Unknown),
            Some(RegisterRule::Offset(offset)) => stack.word(cfa.wrapping_add_signed(*offset)),
            Some(RegisterRule::ValOffset(offset)) => Ok(cfa.wrapping_add_signed(*offset)),
            Some(RegisterRule::Register(other)) => registers.get(other.0).ok_or(End::Unknown),
            Some(RegisterRule::Expression(expression)) => {
                computed(expression, Some(cfa)).and_then(|place| stack.word(place))
            }
            Some(RegisterRule::ValExpression(expression)) => computed(expression, Some(cfa)),
            Some(RegisterRule::Constant(value)) => Ok(*value),
            Some(_) => Err(End::Unknown),
        };
        // A register that is not known may not be needed, but the return address is.
        if number == RIP {
            caller.set(RIP, Some(value?));
        } else {
            caller.set(number, value.ok());
        }
    }
    Ok(Step { registers: caller, cfa, is_signal: row.is_signal })
}
