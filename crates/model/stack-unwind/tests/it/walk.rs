//! Stacks made by hand, with tables that are encoded from rows.

use std::rc::Rc;

use jit_code::{Row, Unwind};
use proptest::prelude::*;
use stack_unwind::{
    End, Guess, Mapped, Mappings, Registers, Section, Sections, StackCopy, Tables, register,
    unwind, unwind_both,
};
use unwind_info::Machine;

const STACK: u64 = 0x7fff_0000;
/// Where the file's addresses are in the process.
const BIAS: u64 = 0x5555_0000_0000;
/// A function of 64 bytes, its address in the file.
const CODE: u64 = 0x1000;
const SIZE: u64 = 64;

/// One file, mapped everywhere.
struct OneFile(Option<Rc<Tables>>);

impl Mappings for OneFile {
    fn at(&mut self, address: u64) -> Mapped {
        match &self.0 {
            _ if address < BIAS => Mapped::NoFile,
            None => Mapped::NoTables,
            Some(tables) => Mapped::File { tables: tables.clone(), bias: BIAS },
        }
    }
}

/// The tables of a file with this one function.
fn tables(unwind: &Unwind<'_>) -> OneFile {
    OneFile(of_section(encoded(unwind)).map(Rc::new))
}

/// The section `.eh_frame` of this one function, which is behind it.
fn encoded(unwind: &Unwind<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    unwind_info::eh_frame(Machine::X86_64, SIZE, SIZE as i64, unwind, &mut bytes).expect("tables");
    bytes
}

fn of_section(bytes: Vec<u8>) -> Option<Tables> {
    let eh_frame = Some(Section { address: CODE + SIZE, bytes });
    Tables::new(Sections { eh_frame, ..Sections::default() })
}

fn registers(ip: u64, sp: u64, bp: u64) -> Registers {
    let mut registers = Registers::default();
    for (number, value) in [(register::RIP, ip), (register::RSP, sp), (register::RBP, bp)] {
        registers.set(number, Some(value));
    }
    registers
}

fn walk(file: &mut OneFile, start: Registers, words: &[u64], guess: Guess) -> (Vec<u64>, End) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut frames = Vec::new();
    let stack = StackCopy { address: STACK, bytes: &bytes };
    let end = unwind(start, stack, file, guess, &mut frames);
    expect_both(file, start, stack, guess, &frames, end);
    (frames, end)
}

/// Both walks at once find what each finds alone.
fn expect_both(
    file: &mut OneFile,
    start: Registers,
    stack: StackCopy<'_>,
    guess: Guess,
    frames: &[u64],
    end: End,
) {
    let mut found = Vec::new();
    let both = unwind_both(start, stack, file, &mut found);
    match guess {
        Guess::FramePointer => assert_eq!((&*found, both.end), (frames, end)),
        Guess::AsPerf => {
            assert_eq!((both.outermost_as_perf, both.as_perf), (frames.last().copied(), end));
        }
    }
}

#[test]
fn frames_are_left_by_the_tables_up_to_the_end_of_the_copy() {
    // `sub rsp, 24`, and no frame pointer.
    let rows = [Row::new(4, 7, 32)];
    let mut file = tables(&Unwind::Rows(&rows));
    let (inside, call) = (BIAS + CODE + 8, BIAS + CODE + 20);
    let words = [1, 2, 3, call, 4, 5, 6, call, 7, 8, 9];
    let start = registers(inside, STACK, 0);
    let (frames, end) = walk(&mut file, start, &words, Guess::AsPerf);
    assert_eq!(frames, [inside, call - 1, call - 1]);
    assert_eq!(end, End::BehindCopy { needed: 12 * 8 });
    // In the first instruction the frame is not there yet.
    let start = registers(BIAS + CODE, STACK + 24, 0);
    let (frames, _) = walk(&mut file, start, &words, Guess::AsPerf);
    assert_eq!(frames, [BIAS + CODE, call - 1, call - 1]);
}

#[test]
fn a_return_address_of_nothing_ends_a_stack() {
    let mut file = tables(&Unwind::Rows(&[]));
    let (frames, end) = walk(&mut file, registers(BIAS + CODE, STACK, 0), &[0, 0], Guess::AsPerf);
    assert_eq!((frames.len(), end), (1, End::NoReturnAddress));
}

#[test]
fn registers_that_are_saved_are_found_again() {
    // The CFA is in rbx (3), which the callee has saved below the return address.
    let rows = [Row::new(0, 3, 16), Row::new(32, 7, 16).saved(&[(3, -16)])];
    let mut file = tables(&Unwind::Rows(&rows));
    let (callee, caller) = (BIAS + CODE + 40, BIAS + CODE + 4);
    let words = [STACK + 16, caller, 0, BIAS + 1];
    let (frames, end) = walk(&mut file, registers(callee, STACK, 0), &words, Guess::AsPerf);
    assert_eq!(frames, [callee, caller - 1, BIAS]);
    // No table describes the last one.
    assert_eq!(end, End::NoFramePointer);
}

/// In code without tables, with a frame that is larger than its frame pointer's words.
#[test]
fn frame_pointers_are_guessed() {
    let other = BIAS + 0x10_0000;
    let rows = [Row::new(0, 7, 24)];
    let words = [11, 12, STACK + 0x70, BIAS + CODE + 9, 13, 14, other, 0];
    let bp = STACK + 16;
    let start = registers(other, STACK, bp);
    let mut file = tables(&Unwind::Rows(&rows));
    let (frames, _) = walk(&mut file, start, &words, Guess::FramePointer);
    assert_eq!(frames, [other, BIAS + CODE + 8, other - 1]);
    // libunwind takes the wrong stack pointer for the caller's.
    let (frames, end) = walk(&mut file, start, &words, Guess::AsPerf);
    assert_eq!(frames[..2], [other, BIAS + CODE + 8]);
    assert_eq!(frames[2..], [12], "{end:?}");
    // perf guesses nothing where a file has no tables, and where there is no file.
    let (frames, end) = walk(&mut OneFile(None), start, &words, Guess::AsPerf);
    assert_eq!((frames.len(), end), (1, End::NoTables { address: other }));
    let start = registers(7, STACK, bp);
    let (frames, end) = walk(&mut OneFile(None), start, &words, Guess::AsPerf);
    assert_eq!((frames.len(), end), (1, End::NoFile { address: 7 }));
    let (frames, _) = walk(&mut OneFile(None), start, &words, Guess::FramePointer);
    assert_eq!(frames, [7, BIAS + CODE + 8]);
}

/// A file without tables, in which one function has no frame.
struct Frameless(u64);

impl Mappings for Frameless {
    fn at(&mut self, _: u64) -> Mapped {
        Mapped::NoTables
    }

    fn is_frameless(&mut self, address: u64, word: u64) -> bool {
        address == self.0 && word == 12
    }
}

#[test]
fn the_caller_of_a_function_without_a_frame_is_found() {
    let words = [12_u64, 0, STACK + 0x20, 14, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackCopy { address: STACK, bytes: &bytes };
    let start = registers(7, STACK, STACK + 16);
    let mut frames = Vec::new();
    unwind(start, stack, &mut Frameless(7), Guess::FramePointer, &mut frames);
    assert_eq!(frames, [7, 11, 13]);
    unwind_both(start, stack, &mut Frameless(7), &mut frames);
    assert_eq!(frames, [7, 11, 13]);
    unwind(start, stack, &mut Frameless(8), Guess::FramePointer, &mut frames);
    assert_eq!(frames, [7, 13]);
    unwind(start, stack, &mut Frameless(7), Guess::AsPerf, &mut frames);
    assert_eq!(frames, [7]);
    // Only the innermost.
    let start = registers(9, STACK, STACK + 16);
    unwind(start, stack, &mut Frameless(13), Guess::FramePointer, &mut frames);
    assert_eq!(frames, [9, 13]);
}

#[test]
fn no_frame_pointer_is_guessed_below_the_frame() {
    let mut file = tables(&Unwind::Rows(&[]));
    let other = BIAS + 0x10_0000;
    for (bp, expected) in [
        (0, End::NoFramePointer),
        (STACK, End::BadFramePointer),
        (STACK + 8 + 0x4001, End::BehindCopy { needed: 0x4011 }),
    ] {
        let (_, end) = walk(&mut file, registers(other, STACK + 8, bp), &[0; 4], Guess::AsPerf);
        assert_eq!(end, expected, "{bp:#x}");
    }
}

/// `_start` and the starts of threads: a CIE whose return address is undefined (`DW_CFA_undefined`, 7).
#[test]
fn a_function_without_a_return_address_is_the_bottom() {
    let mut bytes = encoded(&Unwind::Rows(&[]));
    // The instructions of the FDE are padding so far.
    let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize + 4;
    let fde = length(0);
    let instructions = fde + 17;
    assert!(bytes[instructions..fde + length(fde)].iter().all(|&byte| byte == 0));
    bytes[instructions..instructions + 2].copy_from_slice(&[7, 16]);
    let tables = of_section(bytes).expect("tables");
    assert!(tables.is_bottom(CODE) && tables.is_bottom(CODE + SIZE - 1));
    assert!(!tables.is_bottom(CODE + SIZE) && !tables.is_bottom(CODE - 1));
    let mut file = OneFile(Some(Rc::new(tables)));
    let start = registers(BIAS + CODE + 3, STACK, 0);
    let (frames, end) = walk(&mut file, start, &[BIAS + CODE], Guess::AsPerf);
    assert_eq!((frames.len(), end), (1, End::Bottom));
    assert!(end.is_bottom());
}

#[test]
fn a_stack_that_goes_in_circles_ends() {
    let rows = [Row::new(0, 6, 16).saved(&[(6, -16)])];
    let mut file = tables(&Unwind::Rows(&rows));
    let call = BIAS + CODE + 9;
    let start = registers(call - 1, STACK, STACK);
    let (frames, end) = walk(&mut file, start, &[STACK, call], Guess::AsPerf);
    assert!(frames.len() <= 2, "{frames:?}");
    assert_eq!(end, End::SameFrame);
    // Two frames, each the caller of the other.
    let words = [STACK + 16, call, STACK, call];
    let (frames, end) = walk(&mut file, start, &words, Guess::AsPerf);
    assert_eq!((frames.len(), end), (4096, End::TooMany));
}

proptest! {
    #[test]
    fn any_tables_and_stacks_are_walked_to_an_end(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((0_usize..80, any::<u8>()), 0..6),
        words in prop::collection::vec(prop_oneof![
            any::<u64>(), (0_u64..256).prop_map(|at| STACK + at), (0..SIZE).prop_map(|at| BIAS + CODE + at),
        ], 0..40),
        at in 0..SIZE,
        debug in any::<bool>(),
    ) {
        let rows = [Row::new(4, 7, 16).saved(&[(6, -16)]), Row::new(8, 6, 16).saved(&[(6, -16)])];
        let mut real = encoded(&Unwind::Rows(&rows));
        for (at, byte) in changes {
            if let Some(place) = real.get_mut(at) {
                *place = byte;
            }
        }
        for bytes in [real, bytes] {
            let section = Some(Section { address: CODE + SIZE, bytes });
            let sections = match debug {
                false => Sections { eh_frame: section, ..Sections::default() },
                true => Sections { debug_frame: section, ..Sections::default() },
            };
            let mut file = OneFile(Tables::new(sections).map(Rc::new));
            for guess in [Guess::AsPerf, Guess::FramePointer] {
                let start = registers(BIAS + CODE + at, STACK, STACK + 16);
                let (frames, _) = walk(&mut file, start, &words, guess);
                prop_assert!(!frames.is_empty() && frames.len() <= 4096);
            }
        }
    }
}
