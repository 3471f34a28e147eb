//! The state of a frame at an instruction.

use crate::error::{Error, Inexpressible};
use crate::machine::Machine;
use jit_code::Row;

/// Registers by System V ABI number: general registers, the return address, `xmm`.
pub(super) const GENERAL: u16 = 16;
const FIRST_KEPT_XMM: u16 = 23;
pub(super) const REGISTERS: usize = 33;
const RSP: u16 = 7;
/// `rbx`, `rsi`, `rdi`, `rbp`, `r12` to `r15`: the registers that calls preserve on Windows.
const KEPT: u16 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 0xf << 12;
/// Maximum size in bytes of one `pop`, and of the `jmp` behind them.
const POP: u32 = 2;
const JUMP: u32 = 7;
/// More than the number of registers to pop.
const MOST_POPS: i32 = 15;

/// A state. Locations are distances from the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The frame register, if it is not `rsp`.
    pub(super) frame: Option<u16>,
    /// Distance of the CFA from it, or from `rsp`.
    pub(super) distance: i32,
    /// The locations, indexed by register.
    saved: [Option<i32>; REGISTERS],
}

/// The state after a call.
pub(super) const FIRST: State =
    State { frame: None, distance: Machine::X86_64.entry_cfa_offset(), saved: [None; REGISTERS] };

impl State {
    pub(super) fn of(number: usize, row: &Row<'_>) -> Result<Self, Error> {
        let cannot = |why| Err(Error::Inexpressible { row: number, why });
        if row.signed {
            return Err(Error::Signed);
        }
        let unit = Machine::X86_64.data_alignment();
        let is_whole = |distance: i32| distance.checked_rem(unit) == Some(0);
        if !is_whole(row.cfa_offset) {
            return Err(Error::Unit { row: number });
        }
        let frame = Some(row.cfa_register).filter(|register| *register != RSP);
        match frame {
            Some(register) if !is_kept(register) => {
                return cannot(Inexpressible::FrameRegister { register });
            }
            None if row.cfa_offset < FIRST.distance => return cannot(Inexpressible::Below),
            _ => {}
        }
        let mut state = Self { frame, distance: row.cfa_offset, saved: [None; REGISTERS] };
        for &(register, place) in row.saved {
            if !is_whole(place) {
                return Err(Error::Unit { row: number });
            }
            if register == Machine::X86_64.return_address() {
                if Machine::X86_64.return_address_offset() != Some(place) {
                    return cannot(Inexpressible::ReturnAddress);
                }
                continue;
            }
            let known = state.saved.get_mut(usize::from(register));
            let known = known.ok_or(Error::Register { row: number, register })?;
            if !is_kept(register) && register < FIRST_KEPT_XMM {
                return cannot(Inexpressible::Volatile { register });
            }
            if known.replace(place).is_some() {
                return Err(Error::SavedTwice { row: number, register });
            }
        }
        Ok(state)
    }

    /// Each saved register, and its location.
    pub(super) fn saved(&self) -> impl Iterator<Item = (u16, i32)> {
        (0_u16..).zip(&self.saved).filter_map(|(register, place)| Some((register, (*place)?)))
    }

    pub(super) fn place(&self, register: u16) -> Option<i32> {
        self.saved.get(usize::from(register)).copied().flatten()
    }

    /// Whether the description of `other` is also valid for this state: a register that was restored still has its
    /// value in its location.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        (self.frame, self.distance) == (other.frame, other.distance)
            && self.saved().all(|(register, place)| other.place(register) == Some(place))
    }

    /// Whether this state, which lasts for `bytes` bytes, is within an epilogue of a code in the state `other`: see
    /// the [module's documentation](super).
    pub(super) fn is_epilogue_of(&self, other: &Self, bytes: u32) -> bool {
        let pops = self.distance.checked_sub(FIRST.distance).and_then(|size| size.checked_div(8));
        let Some(pops @ 0..=MOST_POPS) = pops.filter(|_| self.frame.is_none()) else {
            return false;
        };
        // A bit for each location that is left.
        let mut left = 1_u32.unbounded_shl(pops.unsigned_abs()).saturating_sub(1);
        for (register, place) in self.saved() {
            // The location directly below the return address is -16, and is bit 0.
            let bit = place.checked_neg().and_then(|below| below.checked_div(8)?.checked_sub(2));
            let bit =
                bit.filter(|bit| (0..pops).contains(bit)).map(|bit| 1_u32 << bit.unsigned_abs());
            match bit {
                Some(bit) if left & bit != 0 && register < GENERAL => left &= !bit,
                _ => return false,
            }
            if other.place(register) != Some(place) {
                return false;
            }
        }
        let longest = pops.unsigned_abs().saturating_mul(POP).saturating_add(JUMP);
        left == 0 && bytes <= longest
    }
}

fn is_kept(register: u16) -> bool {
    register < GENERAL && KEPT & 1_u16.unbounded_shl(register.into()) != 0
}
