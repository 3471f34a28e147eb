//! Registers that code saves although its description does not list them.

use crate::machine::Machine;
use crate::prologue::Prologue;
use jit_code::Unwind;

/// The first register that a call must preserve, and that `code` saves directly behind its prologue although `unwind` is a frame
/// pointer without a list of saved registers: such code changes the register later. `None` if there is none, or if another
/// instruction comes first.
///
/// This recognizes the usual sequences: on x86-64 pushes, `sub rsp, …`, and stores relative to rbp and rsp; on AArch64 stores
/// relative to sp and x29. It is meant for finding mistakes: code without such stores may still change the register.
#[must_use]
pub fn unlisted_save(machine: Machine, code: &[u8], unwind: &Unwind<'_>) -> Option<u16> {
    let Unwind::FramePointer { prologue, .. } = *unwind else { return None };
    let [.., body] = Prologue::rows(machine, prologue, false);
    let mut rest = code.get(usize::try_from(body.offset).ok()?..)?;
    loop {
        let (size, saved) = match machine {
            Machine::X86_64 => x86_64(rest)?,
            Machine::Aarch64 => aarch64(rest)?,
        };
        let saved = saved.filter(|&saved| machine.preserved().any(|it| u16::from(it) == saved));
        if saved.is_some() {
            return saved;
        }
        rest = rest.get(size..)?;
    }
}

/// Size of the first instruction, and the register that it stores on the stack; `None` if it does not belong to a prologue.
fn x86_64(code: &[u8]) -> Option<(usize, Option<u16>)> {
    // The numbers of DWARF, by those of instructions.
    const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    let dwarf =
        |high: u8, low: u8| DWARF.get(usize::from((high & 1).wrapping_mul(8) | low & 7)).copied();
    Some(match *code {
        // push
        [op @ 0x50..=0x57, ..] => (1, dwarf(0, op)),
        [0x41, op @ 0x50..=0x57, ..] => (2, dwarf(1, op)),
        // sub rsp, …
        [0x48, 0x83, 0xec, ..] => (4, None),
        [0x48, 0x81, 0xec, ..] => (7, None),
        // mov [rbp + …], …: the field `reg` is extended by bit 2 of the prefix
        [rex @ (0x48 | 0x4c), 0x89, to, ..] if to & 0xc7 == 0x45 => (4, dwarf(rex >> 2, to >> 3)),
        [rex @ (0x48 | 0x4c), 0x89, to, ..] if to & 0xc7 == 0x85 => (7, dwarf(rex >> 2, to >> 3)),
        // mov [rsp], …; mov [rsp + …], …
        [rex @ (0x48 | 0x4c), 0x89, to, 0x24, ..] if to & 0xc7 == 0x04 => {
            (4, dwarf(rex >> 2, to >> 3))
        }
        [rex @ (0x48 | 0x4c), 0x89, to, 0x24, ..] if to & 0xc7 == 0x44 => {
            (5, dwarf(rex >> 2, to >> 3))
        }
        _ => return None,
    })
}

/// As [`x86_64`].
fn aarch64(code: &[u8]) -> Option<(usize, Option<u16>)> {
    let word = u32::from_le_bytes(*code.first_chunk()?);
    let base = word >> 5 & 31;
    let stored = u16::try_from(word & 31).ok()?;
    let is_on_stack = base == 31 || base == 29;
    // stp (offset, pre-indexed) and str (unsigned offset, pre-indexed) of 64 bits; the same of d registers
    let saved = match (word & 0xffc0_0000, word & 0xffe0_0c00) {
        (0xa900_0000 | 0xa980_0000 | 0xf900_0000, _) | (_, 0xf800_0c00) => stored,
        (0x6d00_0000 | 0x6d80_0000 | 0xfd00_0000, _) | (_, 0xfc00_0c00) => {
            stored.checked_add(64)?
        }
        // sub sp, sp, …
        _ if word & 0xff00_03ff == 0xd100_03ff => return Some((4, None)),
        _ => return None,
    };
    is_on_stack.then_some((4, Some(saved)))
}
