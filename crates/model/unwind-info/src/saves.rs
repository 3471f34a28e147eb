//! Registers that code saves although its description does not list them.

use crate::machine::Machine;
use crate::prologue::Prologue;
use jit_code::Unwind;

/// As many registers must be preserved by a call at most (AArch64: `x19` to `x28`, `d8` to `d15`).
const MOST: usize = 18;

/// The registers that a code with a frame pointer saves directly behind its prologue. Where its description has no list of them,
/// [`complete`](Self::complete) adds one, so that an exception through the code restores what the code changed.
///
/// The usual sequences are recognized: on x86-64 pushes, `sub rsp, …`, and stores relative to rbp and rsp; on AArch64 stores
/// relative to sp and x29, and `sub sp, sp, …`. The first other instruction ends the search. Up to it, a register that a call must
/// preserve still has the caller's value, so what is found is a save. Registers that are saved later are not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saves {
    list: [(u16, i32); MOST],
    count: usize,
    /// Offset of the instruction behind the last save.
    from: u32,
}

impl Saves {
    /// Reads `code`, if `unwind` is a frame pointer that is set up by the prologue, without a list.
    #[must_use]
    pub fn find(machine: Machine, code: &[u8], unwind: &Unwind<'_>) -> Self {
        let mut saves = Self { list: [(0, 0); MOST], count: 0, from: 0 };
        if let Unwind::FramePointer { prologue, .. } = *unwind
            && saves.read(machine, code, prologue).is_none()
        {
            saves.count = 0;
        }
        saves
    }

    /// Register numbers of DWARF, and where each is saved, as a distance from the CFA.
    #[must_use]
    pub fn list(&self) -> &[(u16, i32)] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// The description with these registers in its list, if any were found.
    #[must_use]
    pub fn complete<'a>(&'a self, unwind: Unwind<'a>) -> Unwind<'a> {
        match unwind {
            Unwind::FramePointer { prologue, signed } if self.count != 0 => {
                Unwind::FramePointerSaving {
                    prologue,
                    signed,
                    saved_from: self.from,
                    saved: self.list(),
                }
            }
            _ => unwind,
        }
    }

    /// `None` if a place is used twice, so that what is in it later is not known.
    fn read(&mut self, machine: Machine, code: &[u8], prologue: u32) -> Option<()> {
        let [.., body] = Prologue::rows(machine, prologue, false);
        let mut at = body.offset;
        // The stack pointer's distance from the CFA.
        let mut depth = body.cfa_offset;
        while let Some(rest) = code.get(usize::try_from(at).ok()?..) {
            let step = match machine {
                Machine::X86_64 => x86_64(rest, depth),
                Machine::Aarch64 => aarch64(rest, depth),
            };
            let Some(step) = step else { break };
            at = at.checked_add(step.size)?;
            depth = step.depth;
            for (register, place) in step.stored.into_iter().flatten() {
                self.add(machine, register, place)?;
                if self.list().last() == Some(&(register, place)) {
                    self.from = at;
                }
            }
        }
        Some(())
    }

    fn add(&mut self, machine: Machine, register: u16, place: i32) -> Option<()> {
        if self.list().iter().any(|(_, used)| used.abs_diff(place) < 8) {
            return None;
        }
        let is_saved = self.list().iter().any(|(saved, _)| *saved == register);
        let is_preserved = machine.preserved().any(|it| u16::from(it) == register);
        // Between are the frame pointer and the return address.
        let is_place = !(-16 - 7..0).contains(&place) && place.checked_rem(8) == Some(0);
        if is_preserved && is_place && !is_saved {
            *self.list.get_mut(self.count)? = (register, place);
            self.count = self.count.checked_add(1)?;
        }
        Some(())
    }
}

/// An instruction of a prologue.
struct Step {
    size: u32,
    /// The distance of the stack pointer from the CFA behind it.
    depth: i32,
    /// The registers that it stores, and where, as a distance from the CFA.
    stored: [Option<(u16, i32)>; 2],
}

/// The first instruction; `None` if it does not belong to a prologue.
fn x86_64(code: &[u8], depth: i32) -> Option<Step> {
    // The numbers of DWARF, by those of instructions.
    const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    let dwarf =
        |high: u8, low: u8| DWARF.get(usize::from((high & 1).wrapping_mul(8) | low & 7)).copied();
    let push = |size, register: Option<u16>| {
        let depth = depth.checked_add(8)?;
        Some(Step { size, depth, stored: [register.map(|it| (it, depth.wrapping_neg())), None] })
    };
    let sub = |size, by: i32| {
        let depth = depth.checked_add(by).filter(|_| by >= 0)?;
        Some(Step { size, depth, stored: [None; 2] })
    };
    // `mov [base + displacement], register`: the field `reg` is extended by bit 2 of the prefix.
    let store = |size, rex: u8, to: u8, displacement: i32, base: i32| {
        let place = displacement.checked_sub(base)?;
        let stored = [dwarf(rex >> 2, to >> 3).map(|it| (it, place)), None];
        Some(Step { size, depth, stored })
    };
    let long = |bytes: &[u8]| bytes.first_chunk().copied().map(i32::from_le_bytes);
    match *code {
        [op @ 0x50..=0x57, ..] => push(1, dwarf(0, op)),
        [0x41, op @ 0x50..=0x57, ..] => push(2, dwarf(1, op)),
        [0x48, 0x83, 0xec, by, ..] => sub(4, by.cast_signed().into()),
        [0x48, 0x81, 0xec, ref by @ ..] => sub(7, long(by)?),
        [rex @ (0x48 | 0x4c), 0x89, to, by, ..] if to & 0xc7 == 0x45 => {
            store(4, rex, to, by.cast_signed().into(), FRAME)
        }
        [rex @ (0x48 | 0x4c), 0x89, to, ref by @ ..] if to & 0xc7 == 0x85 => {
            store(7, rex, to, long(by)?, FRAME)
        }
        [rex @ (0x48 | 0x4c), 0x89, to, 0x24, ..] if to & 0xc7 == 0x04 => {
            store(4, rex, to, 0, depth)
        }
        [rex @ (0x48 | 0x4c), 0x89, to, 0x24, by, ..] if to & 0xc7 == 0x44 => {
            store(5, rex, to, by.cast_signed().into(), depth)
        }
        _ => None,
    }
}

/// The frame pointer's distance from the CFA, on both machines.
const FRAME: i32 = 16;

/// As [`x86_64`].
fn aarch64(code: &[u8], depth: i32) -> Option<Step> {
    let word = u32::from_le_bytes(*code.first_chunk()?);
    let register = |at: u32, first: u16| u16::try_from(word >> at & 31).ok()?.checked_add(first);
    // The field of `bits` bits at `at`, signed.
    let field = |at: u32, bits: u32| {
        let above = 32_u32.checked_sub(bits)?;
        let value = word.checked_shr(at)?.checked_shl(above)?.cast_signed();
        value.checked_shr(above)
    };
    if word & 0xff80_03ff == 0xd100_03ff {
        // sub sp, sp, … (shifted by 12 if bit 22 is set)
        let by = (word >> 10 & 0xfff).checked_shl((word >> 22 & 1).wrapping_mul(12))?;
        let depth = depth.checked_add_unsigned(by)?;
        return Some(Step { size: 4, depth, stored: [None; 2] });
    }
    // stp (offset, pre-indexed), str (unsigned offset, pre-indexed) of 64 bits; the same of d registers
    let pair = word & 0xffc0_0000;
    let single = word & 0xffe0_0c00;
    let (first, count, by, is_indexed) = match (pair, single) {
        (0xa900_0000, _) => (0, 2, field(15, 7)?.checked_mul(8)?, false),
        (0xa980_0000, _) => (0, 2, field(15, 7)?.checked_mul(8)?, true),
        (0x6d00_0000, _) => (64, 2, field(15, 7)?.checked_mul(8)?, false),
        (0x6d80_0000, _) => (64, 2, field(15, 7)?.checked_mul(8)?, true),
        (0xf900_0000, _) => (0, 1, (word >> 10 & 0xfff).cast_signed().checked_mul(8)?, false),
        (0xfd00_0000, _) => (64, 1, (word >> 10 & 0xfff).cast_signed().checked_mul(8)?, false),
        (_, 0xf800_0c00) => (0, 1, field(12, 9)?, true),
        (_, 0xfc00_0c00) => (64, 1, field(12, 9)?, true),
        _ => return None,
    };
    let (place, depth) = match (word >> 5 & 31, is_indexed) {
        (31, true) => {
            let depth = depth.checked_sub(by).filter(|_| by < 0)?;
            (depth.checked_neg()?, depth)
        }
        (31, false) => (by.checked_sub(depth)?, depth),
        (29, false) => (by.checked_sub(FRAME)?, depth),
        _ => return None,
    };
    let second = place.checked_add(8)?;
    let stored = [
        Some((register(0, first)?, place)),
        if count == 2 { Some((register(10, first)?, second)) } else { None },
    ];
    Some(Step { size: 4, depth, stored })
}
