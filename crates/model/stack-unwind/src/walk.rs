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
    /// That it keeps a frame pointer, in whatever memory it is.
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
}

/// Finds the frames of a stack, innermost first: the instruction pointer, and then the address of each call's last byte, as perf has them
/// (or, above a signal handler's frame, the address of the instruction that was interrupted). Returns why the stack ends.
pub fn unwind(
    mut registers: Registers,
    stack: StackCopy<'_>,
    mappings: &mut impl Mappings,
    guess: Guess,
    frames: &mut Vec<u64>,
) -> End {
    frames.clear();
    let Some(mut address) = registers.get(RIP) else { return End::Unknown };
    // What the frame above is known to be beyond.
    let mut cfa = registers.get(RSP).unwrap_or(stack.address);
    loop {
        frames.push(address);
        if frames.len() >= MOST {
            return End::TooMany;
        }
        let step = match step(address, cfa, &registers, stack, mappings, guess) {
            Ok(step) => step,
            Err(end) => return end,
        };
        let Some(caller) = step.registers.get(RIP).filter(|caller| *caller != 0) else {
            return End::NoReturnAddress;
        };
        let next = if step.is_signal { caller } else { caller.wrapping_sub(1) };
        if next == address && step.cfa == cfa {
            return End::SameFrame;
        }
        (address, cfa, registers) = (next, step.cfa, step.registers);
    }
}

/// A frame's caller.
struct Step {
    registers: Registers,
    cfa: u64,
    is_signal: bool,
}

fn step(
    address: u64,
    cfa: u64,
    registers: &Registers,
    stack: StackCopy<'_>,
    mappings: &mut impl Mappings,
    guess: Guess,
) -> Result<Step, End> {
    let nothing = match mappings.at(address) {
        Mapped::File { tables, bias } => match tables.row(address.wrapping_sub(bias)) {
            Some(row) => return follow(&tables, &row, registers, stack),
            None => None,
        },
        Mapped::NoFile => Some(End::NoFile { address }),
        Mapped::NoTables => Some(End::NoTables { address }),
    };
    match nothing.filter(|_| guess == Guess::AsPerf) {
        Some(end) => Err(end),
        None => guessed(cfa, registers, stack, guess),
    }
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
