//! Recognizes stubs: a few instructions of x86-64 that only jump elsewhere.
//!
//! These are the entries of V8's jump tables, the precode of .NET, and tables like an executable's PLT.

use std::ops::Range;

/// The longest stub: a check for indirect jumps, a load, and a jump to an absolute address.
pub const LONGEST: u64 = 32;
/// Stubs and tables begin at multiples of this.
const ALIGNMENT: u64 = 16;

/// A stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// Its addresses.
    pub range: Range<u64>,
    /// Where it jumps.
    pub target: Target,
}

/// Where a stub jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this address.
    Address(u64),
    /// To the address that is in memory here.
    InMemory(u64),
}

/// A piece of memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'m> {
    /// Its address.
    pub address: u64,
    /// Its content.
    pub bytes: &'m [u8],
}

impl<'m> Memory<'m> {
    fn from(&self, address: u64) -> Option<&'m [u8]> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(offset..)
    }

    /// Whether there are `count` such bytes before `address`.
    fn is_padded(&self, address: u64, padding: u8, count: u64) -> bool {
        let before = address.checked_sub(count).and_then(|start| self.from(start));
        let before = usize::try_from(count).ok().zip(before).and_then(|(n, bytes)| bytes.get(..n));
        before.is_some_and(|bytes| bytes.iter().all(|&byte| byte == padding))
    }
}

/// An instruction of a stub.
enum Instruction {
    /// It continues behind it.
    Next { size: u64 },
    /// A value was loaded into this register.
    Load { size: u64, register: u8, value: Target },
    /// A jump.
    Jump { size: u64, target: Target },
    /// A jump to the address in a register.
    JumpRegister { size: u64, register: u8 },
}

/// The stub that has an instruction at `address`, of which the processor was about to execute it.
///
/// Any function may end with a jump, so a stub must begin where something begins: behind another stub, behind padding, or
/// aligned.
pub fn stub_at(memory: Memory<'_>, address: u64) -> Option<Stub> {
    (0..LONGEST).find_map(|back| {
        let start = address.checked_sub(back)?;
        let (stub, _) = decode(memory, start).filter(|(_, starts)| starts.contains(&address))?;
        begins_at(memory, start).then_some(stub)
    })
}

/// Whether a stub may begin at `start`.
fn begins_at(memory: Memory<'_>, start: u64) -> bool {
    // Breakpoints and no-operations; instructions may end with zeros.
    start.is_multiple_of(ALIGNMENT)
        || memory.is_padded(start, 0xcc, 2)
        || memory.is_padded(start, 0x90, 2)
        || memory.is_padded(start, 0, 8)
        || (1..LONGEST).any(|back| {
            let before = start.checked_sub(back).and_then(|start| decode(memory, start));
            before.is_some_and(|(stub, _)| stub.range.end == start)
        })
}

/// The stub that begins at `start`, and where its instructions begin.
fn decode(memory: Memory<'_>, start: u64) -> Option<(Stub, Vec<u64>)> {
    let mut starts = Vec::new();
    let mut loaded: Vec<(u8, Target)> = Vec::new();
    let mut at = start;
    while starts.len() < 4 {
        starts.push(at);
        let (size, target) = match instruction(memory.from(at)?, at)? {
            Instruction::Next { size } => (size, None),
            Instruction::Load { size, register, value } => {
                loaded.push((register, value));
                (size, None)
            }
            Instruction::Jump { size, target } => (size, Some(target)),
            Instruction::JumpRegister { size, register } => {
                let (_, value) = loaded.iter().rev().find(|(loaded, _)| *loaded == register)?;
                (size, Some(*value))
            }
        };
        at = at.checked_add(size)?;
        if let Some(target) = target {
            return Some((Stub { range: start..at, target }, starts));
        }
    }
    None
}

/// The instruction at the beginning of `bytes`, whose address is `at`, if it is one of those that stubs have.
fn instruction(bytes: &[u8], at: u64) -> Option<Instruction> {
    let rel32 = |opcode: usize| {
        let offset = bytes.get(opcode..)?.first_chunk().copied().map(i32::from_le_bytes)?;
        let size = opcode as u64 + 4;
        Some((size, at.checked_add(size)?.checked_add_signed(offset.into())?))
    };
    match *bytes {
        // endbr64
        [0xf3, 0x0f, 0x1e, 0xfa, ..] => Some(Instruction::Next { size: 4 }),
        // push imm32
        [0x68, _, _, _, _, ..] => Some(Instruction::Next { size: 5 }),
        // jmp rel32
        [0xe9, ..] => {
            let (size, target) = rel32(1)?;
            Some(Instruction::Jump { size, target: Target::Address(target) })
        }
        // jmp rel8
        [0xeb, offset, ..] => {
            let target = at.checked_add(2)?.checked_add_signed(offset.cast_signed().into())?;
            Some(Instruction::Jump { size: 2, target: Target::Address(target) })
        }
        // jmp [rip + disp32], also with the prefix bnd
        [0xff, 0x25, ..] => {
            let (size, slot) = rel32(2)?;
            Some(Instruction::Jump { size, target: Target::InMemory(slot) })
        }
        [0xf2, 0xff, 0x25, ..] => {
            let (size, slot) = rel32(3)?;
            Some(Instruction::Jump { size, target: Target::InMemory(slot) })
        }
        // mov r64, [rip + disp32]
        [rex @ (0x48 | 0x4c), 0x8b, modrm, ..] if modrm & 0xc7 == 0x05 => {
            let (size, slot) = rel32(3)?;
            let register = (modrm >> 3) | if rex == 0x4c { 8 } else { 0 };
            Some(Instruction::Load { size, register, value: Target::InMemory(slot) })
        }
        // mov r64, imm64
        [rex @ (0x48 | 0x49), opcode @ 0xb8..=0xbf, ..] => {
            let value = u64::from_le_bytes(*bytes.get(2..)?.first_chunk()?);
            let register = (opcode & 7) | if rex == 0x49 { 8 } else { 0 };
            Some(Instruction::Load { size: 10, register, value: Target::Address(value) })
        }
        // jmp r64
        [0xff, modrm @ 0xe0..=0xe7, ..] => {
            Some(Instruction::JumpRegister { size: 2, register: modrm & 7 })
        }
        [0x41, 0xff, modrm @ 0xe0..=0xe7, ..] => {
            Some(Instruction::JumpRegister { size: 3, register: (modrm & 7) | 8 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT: u64 = 0x7f00_0000_1000;

    fn stub(bytes: &[u8], offset: u64) -> Option<(u64, u64, Target)> {
        let stub = stub_at(Memory { address: AT, bytes }, AT + offset)?;
        Some((stub.range.start - AT, stub.range.end - AT, stub.target))
    }

    #[test]
    fn a_jump_table_of_v8() {
        let table = [0xe9, 0xfb, 0x0f, 0, 0, 0xe9, 0xf6, 0x1f, 0, 0, 0xcc, 0xcc];
        assert_eq!(stub(&table, 0), Some((0, 5, Target::Address(AT + 0x1000))));
        assert_eq!(stub(&table, 5), Some((5, 10, Target::Address(AT + 0x2000))));
        for inside in [1, 4, 6, 10, 11, 12] {
            assert_eq!(stub(&table, inside), None, "{inside}");
        }
    }

    #[test]
    fn stubs_of_several_instructions() {
        // mov r10, 0x1122334455667788; jmp r10
        let far = [0x49, 0xba, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x41, 0xff, 0xe2];
        let target = Target::Address(0x1122_3344_5566_7788);
        assert_eq!(stub(&far, 0), Some((0, 13, target)));
        assert_eq!(stub(&far, 10), Some((0, 13, target)));
        let other = [&far[..12], &[0xe3]].concat();
        assert_eq!(stub(&other, 0), None, "another register");
        // mov r10, [rip + 0xff9]; jmp [rip + 0xffb]: the precode of .NET
        let precode = [0x4c, 0x8b, 0x15, 0xf9, 0x0f, 0, 0, 0xff, 0x25, 0xfb, 0x0f, 0, 0];
        assert_eq!(stub(&precode, 7), Some((0, 13, Target::InMemory(AT + 0x1008))));
        // endbr64; bnd jmp [rip + 0x2f75]: an entry of a PLT
        let plt = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0];
        assert_eq!(stub(&plt, 4), Some((0, 11, Target::InMemory(AT + 11 + 0x2f75))));
        // push 7; jmp -10
        let lazy = [0x68, 7, 0, 0, 0, 0xe9, 0xf6, 0xff, 0xff, 0xff];
        assert_eq!(stub(&lazy, 5), Some((0, 10, Target::Address(AT))));
    }

    #[test]
    fn a_jump_at_the_end_of_a_function_is_no_stub() {
        // add rax, rbx; jmp
        let function = [0x48, 0x01, 0xd8, 0xe9, 0, 1, 0, 0];
        assert_eq!(stub(&function, 3), None);
        let padded = [0x48, 0x01, 0xd8, 0xcc, 0xcc, 0xe9, 0, 1, 0, 0];
        assert_eq!(stub(&padded, 5).map(|(start, ..)| start), Some(5));
        // mov eax, 0; jmp
        let zeros = [0x90, 0xb8, 0, 0, 0, 0, 0xe9, 0, 1, 0, 0];
        assert_eq!(stub(&zeros, 6), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..64), at: u64, offset in 0u64..80) {
            let address = at.saturating_add(offset);
            if let Some(stub) = stub_at(Memory { address: at, bytes: &bytes }, address) {
                prop_assert!(stub.range.contains(&address));
                prop_assert!(stub.range.end - stub.range.start <= LONGEST + 16);
                prop_assert!(stub.range.end - at <= bytes.len() as u64);
            }
        }
    }
}
