//! An unwinder that reads UNWIND_INFO as Microsoft's documentation describes it, and machine states to test it with.
#![allow(dead_code)] // each test file uses its part

use unwind_info::windows::Piece;

/// Registers by the numbers of instructions.
pub const RSP: usize = 4;
/// By the number of an instruction: the number in the System V ABI.
pub const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// A thread that is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub rip: u64,
    pub general: [u64; 16],
    pub xmm: [u128; 16],
}

/// Memory from an address on.
#[derive(Clone, Debug)]
pub struct Stack {
    pub base: u64,
    pub words: Vec<u64>,
}

impl Stack {
    pub fn read(&self, address: u64) -> u64 {
        assert!(address.is_multiple_of(8));
        self.words[(address - self.base) as usize / 8]
    }

    pub fn write(&mut self, address: u64, value: u64) {
        assert!(address.is_multiple_of(8));
        self.words[(address - self.base) as usize / 8] = value;
    }
}

/// Unwinds the machine to its caller. `code` and `infos` are the bytes; `rip` is an offset in the code.
pub fn step(machine: &mut Machine, stack: &Stack, code: &[u8], pieces: &[Piece], infos: &[u8]) {
    let at = machine.rip as u32;
    let piece = pieces.iter().find(|piece| (piece.begin..piece.end).contains(&at)).unwrap();
    let info = &infos[piece.info as usize..];
    assert_eq!(info[0], 1, "version 1, no flags");
    assert_eq!(piece.info % 4, 0);
    let (size, count) = (info[1], usize::from(info[2]));
    let (register, units) = (usize::from(info[3] & 15), u64::from(info[3] >> 4));
    let within = at - piece.begin;
    if within >= size.into() && count > 0 && epilogue(machine, stack, &code[at as usize..]) {
        return;
    }
    let code_at = |index: usize| <[u8; 2]>::try_from(&info[4 + 2 * index..][..2]).unwrap();
    let half = |index: usize| u64::from(u16::from_le_bytes(code_at(index)));
    let length = |[_, operation]: [u8; 2]| match (operation & 15, operation >> 4) {
        (0 | 2 | 3, _) => 1,
        (1, 0) | (4 | 8, _) => 2,
        (1, 1) | (5 | 9, _) => 3,
        other => panic!("operation {other:?}"),
    };
    // The base of saved registers' offsets: the current stack pointer, or the frame register once it is set.
    let mut is_set = false;
    let mut index = 0;
    while index < count {
        let code = code_at(index);
        is_set |= code[1] & 15 == 3 && (u32::from(code[0]) <= within || within >= size.into());
        index += length(code);
    }
    assert_eq!(index, count, "codes end within one");
    let frame = machine.general[register].wrapping_sub(16 * units);
    let base = if is_set { frame } else { machine.general[RSP] };
    let mut before = u8::MAX;
    let mut index = 0;
    while index < count {
        let [offset, operation] = code_at(index);
        assert!(offset <= before && offset <= size, "codes descend");
        before = offset;
        let number = usize::from(operation >> 4);
        if u32::from(offset) <= within || within >= size.into() {
            let far = |index: usize| half(index) | half(index + 1) << 16;
            match operation & 15 {
                0 => {
                    machine.general[number] = stack.read(machine.general[RSP]);
                    machine.general[RSP] += 8;
                }
                1 if number == 0 => machine.general[RSP] += 8 * half(index + 1),
                1 => machine.general[RSP] += far(index + 1),
                2 => machine.general[RSP] += 8 * number as u64 + 8,
                3 => machine.general[RSP] = frame,
                4 => machine.general[number] = stack.read(base + 8 * half(index + 1)),
                5 => machine.general[number] = stack.read(base + far(index + 1)),
                kind @ (8 | 9) => {
                    let offset = if kind == 8 { 16 * half(index + 1) } else { far(index + 1) };
                    let low = stack.read(base + offset);
                    let high = stack.read(base + offset + 8);
                    machine.xmm[number] = u128::from(low) | u128::from(high) << 64;
                }
                other => panic!("operation {other}"),
            }
        }
        index += length([offset, operation]);
    }
    machine.rip = stack.read(machine.general[RSP]);
    machine.general[RSP] += 8;
}

/// Runs an epilogue to its end, if these instructions are one.
fn epilogue(machine: &mut Machine, stack: &Stack, mut code: &[u8]) -> bool {
    let mut end = machine.clone();
    let number = |bytes: &[u8]| i32::from_le_bytes(bytes[..4].try_into().unwrap()) as i64 as u64;
    if let [0x48, 0x81, 0xc4, rest @ ..] = code {
        end.general[RSP] = end.general[RSP].wrapping_add(number(rest));
        code = &rest[4..];
    } else if let [0x48 | 0x49, 0x8d, modrm @ (0xa0..=0xa3 | 0xa5..=0xa7), rest @ ..] = code {
        let from = usize::from(modrm & 7) + if code[0] == 0x49 { 8 } else { 0 };
        end.general[RSP] = end.general[from].wrapping_add(number(rest));
        code = &rest[4..];
    }
    loop {
        let (register, rest) = match code {
            [0x41, pop @ 0x58..=0x5f, rest @ ..] => (usize::from(pop - 0x58) + 8, rest),
            [pop @ 0x58..=0x5f, rest @ ..] => (usize::from(pop - 0x58), rest),
            [0xc3, ..] => break,
            _ => return false,
        };
        end.general[register] = stack.read(end.general[RSP]);
        end.general[RSP] += 8;
        code = rest;
    }
    end.rip = stack.read(end.general[RSP]);
    end.general[RSP] += 8;
    *machine = end;
    true
}
