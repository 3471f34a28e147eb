//! Windows' unwind codes restore the caller's registers at each instruction: checked with an unwinder written from
//! the documentation and, on Windows, with the system's own.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use unwind_info::windows::{Piece, encode};
use unwind_info::{Error, Inexpressible, Row, Unwind};

use crate::common::windows::{DWARF, Machine, RSP, Stack, step};
#[cfg(windows)]
use crate::common::windows_system as system;

/// Registers that calls preserve, by instruction-encoding number.
const KEPT: [usize; 8] = [3, 5, 6, 7, 12, 13, 14, 15];
/// Those of them that can be a frame register here: r12 takes another form of `lea`.
const FRAMES: [usize; 3] = [3, 5, 14];
const RETURN: u64 = 0x1122_3344_5566;
/// Words of the stack, and the position of the CFA.
const WORDS: usize = 4096;
const CFA_AT: usize = WORDS - 64;

#[derive(Clone, Debug)]
enum Instruction {
    Push(usize),
    Pop(usize),
    /// To `rsp`.
    Add(i32),
    /// To memory at a distance from `rsp`.
    Store(usize, i32),
    /// And back.
    Load(usize, i32),
    /// A frame register from `rsp`, at a distance.
    SetFrame(usize, i32),
    /// `rsp` from it.
    Leave(usize, i32),
    Clobber(usize),
    Nop,
    Ret,
}

impl Instruction {
    fn encode(&self, out: &mut Vec<u8>) {
        let number = |register: usize| register as u8 & 7;
        let high = |register: usize| u8::from(register >= 8);
        let short = |operation: u8, register: usize, out: &mut Vec<u8>| {
            if register >= 8 {
                out.push(0x41);
            }
            out.push(operation + number(register));
        };
        let stack = |operation: u8, register: usize, at: i32, out: &mut Vec<u8>| {
            let (prefix, modrm) = (0x48 | high(register) << 2, 0x84 | number(register) << 3);
            out.extend([prefix, operation, modrm, 0x24]);
            out.extend(at.to_le_bytes());
        };
        match *self {
            Self::Push(register) => short(0x50, register, out),
            Self::Pop(register) => short(0x58, register, out),
            Self::Add(bytes) => {
                out.extend([0x48, 0x81, 0xc4]);
                out.extend(bytes.to_le_bytes());
            }
            Self::Store(register, at) => stack(0x89, register, at, out),
            Self::Load(register, at) => stack(0x8b, register, at, out),
            Self::SetFrame(register, at) => stack(0x8d, register, at, out),
            Self::Leave(register, at) => {
                out.extend([0x48 | high(register), 0x8d, 0xa0 | number(register)]);
                out.extend(at.to_le_bytes());
            }
            Self::Clobber(register) => {
                out.extend([0x48 | high(register), 0xc7, 0xc0 | number(register), 1, 2, 3, 0]);
            }
            Self::Nop => out.push(0x90),
            Self::Ret => out.push(0xc3),
        }
    }

    fn run(&self, machine: &mut Machine, stack: &mut Stack) {
        let at = |rsp: u64, offset: i32| rsp.wrapping_add_signed(offset.into());
        let rsp = machine.general[RSP];
        match *self {
            Self::Push(register) => {
                stack.write(rsp - 8, machine.general[register]);
                machine.general[RSP] -= 8;
            }
            Self::Pop(register) => {
                machine.general[register] = stack.read(rsp);
                machine.general[RSP] += 8;
            }
            Self::Add(bytes) => machine.general[RSP] = at(rsp, bytes),
            Self::Store(register, offset) => {
                stack.write(at(rsp, offset), machine.general[register])
            }
            Self::Load(register, offset) => machine.general[register] = stack.read(at(rsp, offset)),
            Self::SetFrame(register, offset) => machine.general[register] = at(rsp, offset),
            Self::Leave(register, offset) => {
                machine.general[RSP] = at(machine.general[register], offset);
            }
            Self::Clobber(register) => machine.general[register] = 0x0003_0201,
            Self::Nop => {}
            Self::Ret => {
                machine.rip = stack.read(rsp);
                machine.general[RSP] += 8;
            }
        }
    }
}

/// A row with its registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedRow {
    offset: u32,
    cfa: (u16, i32),
    saved: Vec<(u16, i32)>,
}

fn borrow(rows: &[OwnedRow]) -> Vec<Row<'_>> {
    rows.iter().map(|it| row(it.offset, it.cfa, &it.saved)).collect()
}

/// A function that a compiler may generate.
#[derive(Clone, Debug)]
struct Shape {
    pushed: Vec<usize>,
    room: i32,
    frame: Option<(usize, i32)>,
    /// Whether registers are saved by `mov`, and whether before the stack space is allocated.
    stored: Vec<usize>,
    early: bool,
    /// Bytes of padding before the frame, before the stores, and in it.
    padding: [usize; 3],
    ways_out: usize,
}

fn shape() -> impl Strategy<Value = Shape> {
    let registers = proptest::sample::subsequence(KEPT.to_vec(), 0..=KEPT.len()).prop_shuffle();
    let room = prop_oneof![Just(0), (1..40).prop_map(|n| n * 8), (1..1000).prop_map(|n| n * 8)];
    let frame = prop_oneof![
        1 => Just(None),
        2 => (0..FRAMES.len(), 0..15).prop_map(|(n, units)| Some((FRAMES[n], units * 16))),
    ];
    let padding = [
        prop_oneof![3 => Just(0_usize), 1 => 1..300_usize],
        prop_oneof![3 => Just(0_usize), 1 => 1..300_usize],
        prop_oneof![1 => Just(0_usize), 3 => 1..30_usize],
    ];
    (registers, room, frame, 0..9_usize, any::<bool>(), padding, 1..4_usize).prop_map(
        |(mut registers, room, frame, stored, early, padding, ways_out)| {
            if let Some((frame, _)) = frame {
                registers.retain(|register| *register != frame);
                registers.push(frame);
                registers.rotate_right(1);
            }
            let split = stored.min(registers.len().saturating_sub(usize::from(frame.is_some())));
            let stored = registers.split_off(registers.len() - split);
            Shape { pushed: registers, room, frame, stored, early, padding, ways_out }
        },
    )
}

/// The instructions, and the rows that describe them.
struct Compiled {
    instructions: Vec<Instruction>,
    rows: Vec<OwnedRow>,
    bytes: Vec<u8>,
    /// What describes the next instruction, except for its offset.
    state: OwnedRow,
    /// Where the frame is made.
    body: u64,
}

impl Compiled {
    fn add(&mut self, instruction: Instruction) {
        instruction.encode(&mut self.bytes);
        self.instructions.push(instruction);
        let last = self.rows.last();
        if last.is_none_or(|it| (it.cfa, &it.saved) != (self.state.cfa, &self.state.saved)) {
            self.add_row();
        }
    }

    /// Describes what follows.
    fn add_row(&mut self) {
        self.rows.push(OwnedRow { offset: self.bytes.len() as u32, ..self.state.clone() });
    }

    /// Removes what describes nothing that exists.
    fn trim_rows(&mut self) {
        self.rows.retain(|row| (row.offset as usize) < self.bytes.len());
    }

    /// The stack has this size, from which the CFA is counted unless there is a frame register.
    fn set_depth(&mut self, depth: i32) {
        if self.state.cfa.0 == 7 {
            self.state.cfa.1 = depth;
        }
    }
}

/// `None` if the space is too small for what is stored there.
fn compile(shape: &Shape) -> Option<Compiled> {
    let mut made = Compiled {
        instructions: Vec::new(),
        rows: Vec::new(),
        bytes: Vec::new(),
        state: OwnedRow { offset: 0, cfa: (7, 8), saved: Vec::new() },
        body: 0,
    };
    let mut depth = 8;
    for _ in 0..shape.padding[0] {
        made.add(Instruction::Nop);
    }
    for &register in &shape.pushed {
        depth += 8;
        made.set_depth(depth);
        made.state.saved.push((DWARF[register], -depth));
        made.add(Instruction::Push(register));
    }
    // Into the space that a caller leaves above the return address.
    let stored = if shape.early { shape.stored.len().min(4) } else { 0 };
    for (number, &register) in shape.stored.iter().enumerate().take(stored) {
        let place = 8 * number as i32;
        made.state.saved.push((DWARF[register], place));
        made.add(Instruction::Store(register, depth + place));
    }
    if shape.room > 0 {
        depth += shape.room;
        made.set_depth(depth);
        made.add(Instruction::Add(-shape.room));
    }
    if let Some((register, offset)) = shape.frame {
        made.state.cfa = (DWARF[register], depth - offset);
        made.add(Instruction::SetFrame(register, offset));
    }
    for _ in 0..shape.padding[1] {
        made.add(Instruction::Nop);
    }
    for (number, &register) in shape.stored.iter().enumerate().skip(stored) {
        let at = 8 * (number - stored) as i32;
        if at + 8 > shape.room {
            return None;
        }
        made.state.saved.push((DWARF[register], at - depth));
        made.add(Instruction::Store(register, at));
    }
    for &register in shape.pushed.iter().chain(&shape.stored) {
        if shape.frame.is_none_or(|(frame, _)| frame != register) {
            made.add(Instruction::Clobber(register));
        }
    }
    let body = made.state.clone();
    made.body = made.bytes.len() as u64;
    for _ in 0..shape.ways_out {
        made.state.clone_from(&body);
        // Behind a `ret` the body continues.
        made.trim_rows();
        made.add_row();
        for _ in 0..shape.padding[2] {
            made.add(Instruction::Nop);
        }
        if shape.frame.is_some() {
            made.add(Instruction::Add(-64));
        }
        let left = 8 + 8 * shape.pushed.len() as i32;
        let popped: Vec<u16> = shape.pushed.iter().map(|&register| DWARF[register]).collect();
        let is_popped = |(register, _): &(u16, i32)| popped.contains(register);
        // Registers saved by `mov` are restored by `mov`.
        let lower = if shape.frame.is_some() { 64 } else { 0 };
        for &(register, place) in &body.saved {
            let register = DWARF.iter().position(|dwarf| *dwarf == register).unwrap();
            if shape.stored.contains(&register) {
                made.add(Instruction::Load(register, depth + lower + place));
            }
        }
        if let Some((register, offset)) = shape.frame {
            made.state.saved.retain(is_popped);
            made.state.cfa = (7, left);
            made.add(Instruction::Leave(register, depth - left - offset));
        } else if shape.room > 0 {
            made.state.saved.retain(is_popped);
            made.state.cfa = (7, left);
            made.add(Instruction::Add(shape.room));
        }
        for (number, &register) in shape.pushed.iter().enumerate().rev() {
            made.state.cfa = (7, 8 + 8 * number as i32);
            made.state.saved.retain(|(saved, _)| *saved != DWARF[register]);
            made.add(Instruction::Pop(register));
        }
        made.add(Instruction::Ret);
    }
    made.trim_rows();
    Some(made)
}

/// The state that all walks should produce.
fn caller(stack: &Stack) -> Machine {
    let mut machine = Machine { rip: RETURN, general: [0; 16], xmm: [0; 16] };
    for (number, register) in machine.general.iter_mut().enumerate() {
        *register = 0xca11_0000 + number as u64;
    }
    machine.general[RSP] = stack.base + 8 * CFA_AT as u64;
    machine
}

/// The registers that a caller may rely on.
fn relied_on(machine: &Machine) -> (u64, u64, [u64; 8], Vec<u128>) {
    let kept = KEPT.map(|register| machine.general[register]);
    (machine.rip, machine.general[RSP], kept, machine.xmm[6..].to_vec())
}

fn check_at(
    machine: &Machine,
    stack: &Stack,
    code: &[u8],
    (pieces, infos): (&[Piece], &[u8]),
    expected: &Machine,
) -> Result<(), TestCaseError> {
    let mut found = machine.clone();
    step(&mut found, stack, code, pieces, infos);
    prop_assert_eq!(relied_on(&found), relied_on(expected), "at {}", machine.rip);
    #[cfg(windows)]
    prop_assert_eq!(
        relied_on(&system::step(machine, code, pieces, infos)),
        relied_on(expected),
        "by the system, at {}",
        machine.rip
    );
    Ok(())
}

fn new_stack() -> Stack {
    let words: Vec<u64> = (0..WORDS as u64).map(|n| 0xdead_0000_0000 + n).collect();
    // Its memory is read by the system's unwinder.
    Stack { base: words.as_ptr().addr() as u64, words }
}

fn check_code(shape: &Shape) -> Result<(), TestCaseError> {
    let Some(compiled) = compile(shape) else { return Ok(()) };
    let Compiled { instructions, rows, bytes: code, body: body_begins, .. } = compiled;
    let rows = borrow(&rows);
    let mut infos = Vec::new();
    let pieces = match encode(code.len() as u64, &Unwind::Rows(&rows), &mut infos) {
        Ok(pieces) => pieces,
        // More than 240 bytes below the frame register.
        Err(Error::Inexpressible { why: Inexpressible::FarFromFrame, .. })
            if shape.frame.is_some() =>
        {
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let mut stack = new_stack();
    let expected = caller(&stack);
    let mut machine = expected.clone();
    machine.general[RSP] -= 8;
    stack.write(machine.general[RSP], RETURN);
    let mut offset = 0;
    let mut body = None;
    for instruction in &instructions {
        machine.rip = offset;
        // All exits begin in the same state.
        if offset == body_begins {
            body = Some((machine.clone(), stack.clone()));
        }
        check_at(&machine, &stack, &code, (&pieces, &infos), &expected)?;
        let mut bytes = Vec::new();
        instruction.encode(&mut bytes);
        offset += bytes.len() as u64;
        instruction.run(&mut machine, &mut stack);
        if matches!(instruction, Instruction::Ret)
            && let Some((then, memory)) = &body
        {
            machine = then.clone();
            // The buffer stays where it is.
            stack.words.clone_from(&memory.words);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_caller_is_found_from_each_instruction(shape in shape()) {
        check_code(&shape)?;
    }

    /// For arbitrary states: where an encoding exists, it is correct, except where a state is taken for one of an
    /// epilogue.
    #[test]
    fn the_caller_is_found_from_each_row(rows in any_rows(), size in 300..900_u32) {
        check_rows(&rows, size)?;
    }

    #[test]
    fn any_input_is_encoded_or_refused_without_output(
        size in prop_oneof![0..200_u64, any::<u64>()],
        rows in vec((0..200_u32, any::<u16>(), any::<i32>(), vec((0..140_u16, any::<i32>()), 0..3)), 0..5),
        prologue in prop_oneof![0..80_u32, any::<u32>()],
    ) {
        let rows: Vec<OwnedRow> = rows
            .into_iter()
            .map(|(offset, register, at, saved)| OwnedRow { offset, cfa: (register % 16, at & !7), saved })
            .collect();
        let rows = borrow(&rows);
        for unwind in [
            Unwind::Rows(&rows),
            Unwind::FramePointer { prologue, signed: false },
            Unwind::FramePointerSaving {
                prologue,
                signed: false,
                saved_from: prologue.saturating_add(8),
                saved: rows.first().map_or(&[], |row| row.saved),
            },
            Unwind::FramePointerAlways { signed: false },
        ] {
            let mut out = vec![1, 2, 3];
            match encode(size, &unwind, &mut out) {
                Err(_) => prop_assert_eq!(&out[..], [1, 2, 3]),
                Ok(pieces) => {
                    let mut next = 0;
                    for piece in &pieces {
                        prop_assert!(piece.begin == next && piece.begin < piece.end);
                        next = piece.end;
                    }
                    prop_assert_eq!(u64::from(next), size);
                }
            }
        }
    }
}

fn any_rows() -> impl Strategy<Value = Vec<OwnedRow>> {
    let place = prop_oneof![8 => (-30..-1).prop_map(|n| 8 * n), 1 => (0..4).prop_map(|n| 8 * n)];
    let registers = [3_u16, 4, 5, 6, 12, 13, 14, 15, 23, 27, 32];
    let saved = vec((proptest::sample::select(registers.to_vec()), place), 0..6);
    let cfa = prop_oneof![
        3 => (1..40).prop_map(|n| (7, 8 * n)),
        1 => (-2..20).prop_map(|n| (6, 8 * n)),
        1 => (0..20).prop_map(|n| (13, 8 * n)),
    ];
    let row = (cfa, saved, any::<bool>(), any::<bool>());
    (btree_set(0..300_u32, 1..8), vec(row, 8)).prop_map(|(offsets, states)| {
        let mut rows: Vec<OwnedRow> = Vec::new();
        for (offset, (cfa, saved, keeps, returns)) in offsets.into_iter().zip(states) {
            let mut row = OwnedRow { offset, cfa, saved: Vec::new() };
            if keeps && let Some(last) = rows.last() {
                row.saved.clone_from(&last.saved);
            }
            if returns && let Some(first) = rows.first() {
                (row.cfa, row.saved) = (first.cfa, first.saved.clone());
            }
            for (register, place) in saved {
                // 16 bytes for an xmm register, and a separate location for each.
                let wide = |register: u16| if register > 16 { 16 } else { 8 };
                let is_free = row.saved.iter().all(|&(other, at)| {
                    register != other && (at + wide(other) <= place || place + wide(register) <= at)
                });
                let is_clear = place + wide(register) <= -8 || place >= 0;
                if is_free && is_clear {
                    row.saved.push((register, place));
                }
            }
            rows.push(row);
        }
        rows
    })
}

fn check_rows(rows: &[OwnedRow], size: u32) -> Result<(), TestCaseError> {
    let borrowed = borrow(rows);
    let mut infos = Vec::new();
    let Ok(pieces) = encode(size.into(), &Unwind::Rows(&borrowed), &mut infos) else {
        return Ok(());
    };
    // None of these instructions ends a function.
    let code = vec![0x90; size as usize];
    for (number, row) in rows.iter().enumerate() {
        let end = rows.get(number + 1).map_or(size, |next| next.offset);
        let pops = (row.cfa.1 - 8) / 8;
        let is_tiled = row.cfa.0 == 7
            && row.saved.len() as i32 == pops
            && row.saved.iter().all(|&(register, at)| at >= -row.cfa.1 && at < 0 && register < 16);
        if is_tiled && number > 0 && end - row.offset <= 2 * pops as u32 + 7 {
            continue;
        }
        let mut stack = new_stack();
        let mut expected = caller(&stack);
        let cfa = expected.general[RSP];
        stack.write(cfa - 8, RETURN);
        let mut machine = expected.clone();
        machine.general[RSP] = cfa - 8 * 1000;
        if row.cfa.0 != 7 {
            let at = DWARF.iter().position(|dwarf| *dwarf == row.cfa.0).unwrap();
            machine.general[at] = cfa.wrapping_add_signed(-i64::from(row.cfa.1));
            expected.general[at] = machine.general[at];
        } else {
            machine.general[RSP] = cfa - row.cfa.1 as u64;
        }
        // A register that is no longer saved was restored: its value is still in its location.
        let general = |register: u16| DWARF.iter().position(|dwarf| *dwarf == register);
        for &(register, place) in rows[..number].iter().flat_map(|row| &row.saved) {
            let at = cfa.wrapping_add_signed(place.into());
            match general(register) {
                Some(general) => stack.write(at, machine.general[general]),
                None => [0, 8].into_iter().for_each(|half| stack.write(at + half, 0)),
            }
        }
        for &(register, place) in &row.saved {
            let at = cfa.wrapping_add_signed(place.into());
            let value = 0x5a5a_0000 + u64::from(register);
            stack.write(at, value);
            if register > 16 {
                stack.write(at + 8, !value);
                expected.xmm[usize::from(register) - 17] =
                    u128::from(value) | u128::from(!value) << 64;
            } else {
                expected.general[general(register).unwrap()] = value;
            }
        }
        for at in [row.offset, end - 1] {
            machine.rip = at.into();
            check_at(&machine, &stack, &code, (&pieces, &infos), &expected)?;
        }
    }
    Ok(())
}

const fn row(offset: u32, cfa: (u16, i32), saved: &[(u16, i32)]) -> Row<'_> {
    Row::new(offset, cfa.0, cfa.1).saved(saved)
}

/// Unwind codes as compilers for Windows write them.
#[test]
fn common_prologues_have_the_codes_of_compilers() {
    let made = |rows: &[Row<'_>]| {
        let mut infos = Vec::new();
        let pieces = encode(100, &Unwind::Rows(rows), &mut infos).unwrap();
        assert_eq!(pieces, [Piece { begin: 0, end: 100, info: 0 }]);
        infos
    };
    // A leaf.
    assert_eq!(made(&[]), [1, 0, 0, 0]);
    // push rbx; sub rsp, 32
    let saved = [(3, -16)];
    let rows = [row(1, (7, 16), &saved), row(5, (7, 48), &saved), row(99, (7, 8), &[])];
    assert_eq!(made(&rows), [1, 5, 2, 0, 5, 0x32, 1, 0x30]);
    // push r12; sub rsp, 0x1000; and with 16 MB more
    let saved = [(12, -16)];
    let rows = [row(2, (7, 16), &saved), row(9, (7, 0x1010), &saved)];
    assert_eq!(made(&rows), [1, 9, 3, 0, 9, 1, 0, 2, 2, 0xc0, 0, 0]);
    let rows = [row(2, (7, 16), &saved), row(9, (7, 0x100_1010), &saved)];
    assert_eq!(made(&rows), [1, 9, 4, 0, 9, 0x11, 0, 0x10, 0, 1, 2, 0xc0]);
    // push rbp; push rbx; sub rsp, 56; lea rbp, [rsp + 48]; movaps [rsp + 32], xmm6
    let pushed = [(6, -16), (3, -24)];
    let all = [(6, -16), (3, -24), (23, -48)];
    let rows = [
        row(1, (7, 16), &pushed[..1]),
        row(2, (7, 24), &pushed),
        row(6, (7, 80), &pushed),
        row(11, (6, 32), &pushed),
        row(16, (6, 32), &all),
    ];
    let expected = [1, 16, 6, 0x35, 16, 0x68, 2, 0, 11, 3, 6, 0x62, 2, 0x30, 1, 0x50];
    assert_eq!(made(&rows), expected);
}

#[test]
fn code_with_several_frame_changes_has_several_pieces() {
    let saved = [(3, -16)];
    let body = row(4, (7, 48), &saved);
    let pieces = |rows: &[Row<'_>]| {
        let pieces = encode(1000, &Unwind::Rows(rows), &mut Vec::new()).unwrap();
        pieces.iter().map(|piece| piece.begin).collect::<Vec<_>>()
    };
    // Far from the beginning.
    assert_eq!(pieces(&[body, row(500, (7, 64), &saved)]), [0, 500]);
    // More stack for a call, and less again.
    let call = row(20, (7, 64), &saved);
    assert_eq!(pieces(&[body, call, row(30, (7, 48), &saved)]), [0, 30]);
    // An epilogue, and the body again; then something that lasts longer than an epilogue.
    assert_eq!(pieces(&[body, row(40, (7, 8), &[]), row(41, (7, 48), &saved)]), [0]);
    assert_eq!(pieces(&[body, row(40, (7, 8), &[]), row(60, (7, 48), &saved)]), [0, 40]);
    // Saved before space is allocated, as the distances from the stack pointer show.
    let early = [(3, 0)];
    assert_eq!(pieces(&[row(5, (7, 8), &early), row(9, (7, 48), &early)]), [0, 9]);
}

#[test]
fn inexpressible_rows_are_refused() {
    let first = row(1, (7, 16), &[]);
    for (rows, at, cause) in [
        (&[first, row(2, (0, 16), &[])][..], 1, Inexpressible::FrameRegister { register: 0 }),
        (&[row(2, (7, 16), &[(8, -16)])], 0, Inexpressible::Volatile { register: 8 }),
        (&[row(2, (7, 16), &[(17, -16)])], 0, Inexpressible::Volatile { register: 17 }),
        (&[row(2, (7, 16), &[(16, -16)])], 0, Inexpressible::ReturnAddress),
        (&[row(2, (7, 0), &[])], 0, Inexpressible::Below),
        (&[row(2, (7, 16), &[(3, -24)])], 0, Inexpressible::Below),
        (&[row(2, (6, 16), &[(3, -264)])], 0, Inexpressible::FarFromFrame),
    ] {
        match encode(100, &Unwind::Rows(rows), &mut Vec::new()) {
            Err(Error::Inexpressible { row, why }) => assert_eq!((row, why), (at, cause)),
            other => panic!("{other:?} instead of {cause:?}"),
        }
    }
    let twice = [(3, -16), (3, -24)];
    for (unwind, expected) in [
        (Unwind::EhFrame(&[]), Error::ReadyAsEntry),
        (Unwind::FramePointerAlways { signed: true }, Error::Signed),
        (Unwind::Rows(&[row(2, (7, 20), &[])]), Error::Unit { row: 0 }),
        (Unwind::Rows(&[first, first]), Error::RowOrder { row: 1 }),
        (Unwind::Rows(&[row(100, (7, 16), &[])]), Error::RowOutside { row: 0 }),
        (Unwind::Rows(&[row(2, (7, 32), &twice)]), Error::SavedTwice { row: 0, register: 3 }),
    ] {
        assert_eq!(encode(100, &unwind, &mut Vec::new()), Err(expected));
    }
}
