//! The operations of a prologue, and their encoding.

use alloc::vec::Vec;

use super::state::{FIRST, GENERAL, REGISTERS, State};
use crate::error::{Error, Inexpressible};

/// `UWOP_*`.
const PUSH_NONVOL: u8 = 0;
const ALLOC_LARGE: u8 = 1;
const ALLOC_SMALL: u8 = 2;
const SET_FPREG: u8 = 3;
const SAVE_NONVOL: u8 = 4;
const SAVE_NONVOL_FAR: u8 = 5;
const SAVE_XMM128: u8 = 8;
const SAVE_XMM128_FAR: u8 = 9;

const VERSION: u8 = 1;
/// Maximum number of two-byte codes in one UNWIND_INFO.
const MOST_CODES: usize = 255;
/// Maximum number of operations that one row adds: for each register, an allocation above it and a push; then another
/// allocation, and the frame.
const MOST_ADDED: usize = 2 * REGISTERS + 2;
/// Maximum size of an UNWIND_INFO: a header, and an even number of codes.
const MOST_BYTES: usize = 4 + 2 * (MOST_CODES + 1);
/// The instruction-encoding numbers of registers, indexed by System V ABI number.
const NUMBERS: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
const FIRST_XMM: u16 = 17;
/// The frame register points at most this many units of 16 bytes above `rsp`.
const MOST_UNITS: i32 = 15;
const UNIT: i32 = 16;

/// The effect of an instruction.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Push {
        register: u8,
    },
    Allocate {
        bytes: u32,
    },
    /// The register and its offset are in the header.
    SetFrame,
    Save {
        register: u8,
        offset: u32,
    },
    SaveXmm {
        register: u8,
        offset: u32,
    },
}

/// The operations so far, each with the offset behind its instruction.
#[derive(Debug)]
pub(super) struct Prologue {
    /// Has capacity for [`MOST_CODES`].
    operations: Vec<(u8, Operation)>,
    /// Has capacity for what a row adds: [`MOST_ADDED`] operations. `pushed` holds the registers among them that were
    /// pushed.
    added: Vec<Operation>,
    pushed: Vec<(i32, u16)>,
    codes: usize,
    /// The lowest location of anything that is saved in the code.
    lowest: i32,
    /// Distance of `rsp` below the CFA, now or when the frame register was set.
    depth: i32,
    frame: Option<(u8, u8)>,
    /// Whether something was saved relative to this depth, which must not change then.
    is_fixed: bool,
}

impl Prologue {
    /// Creates a value with capacity for everything that can be added.
    pub(super) fn new(lowest: i32) -> Result<Self, Error> {
        Ok(Self {
            operations: with_reserved(MOST_CODES)?,
            added: with_reserved(MOST_ADDED)?,
            pushed: with_reserved(REGISTERS)?,
            codes: 0,
            lowest,
            depth: FIRST.distance,
            frame: None,
            is_fixed: false,
        })
    }

    /// Resets the value, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.operations.clear();
        (self.codes, self.depth) = (0, FIRST.distance);
        (self.frame, self.is_fixed) = (None, false);
    }

    /// Adds the operations that lead from one state to the next, at an offset. On failure, the previous operations
    /// are unchanged.
    pub(super) fn add(&mut self, at: u8, old: &State, new: &State) -> Result<(), Inexpressible> {
        let is_kept = old.saved().all(|(register, place)| new.place(register) == Some(place));
        if !is_kept {
            return Err(Inexpressible::Below);
        }
        let (depth, frame) = match (old.frame, new.frame) {
            (None, None) if new.distance >= old.distance => (new.distance, None),
            (None, Some(register)) => {
                let (depth, units) = self.frame_depth(new)?;
                (depth, Some((number(register), units)))
            }
            (Some(_), Some(_)) if (old.frame, old.distance) == (new.frame, new.distance) => {
                (self.depth, self.frame)
            }
            _ => return Err(Inexpressible::Below),
        };
        let is_set = self.frame.is_none() && frame.is_some();
        if self.is_fixed && (depth != self.depth || is_set) {
            return Err(Inexpressible::Below);
        }

        let is_new = |(register, _): &(u16, i32)| old.place(*register).is_none();
        let before = self.depth;
        // A pushed register is in the newly allocated range, at its depth. The rest of the range is plain allocation.
        let is_pushed = |(register, place): &(u16, i32)| {
            let below = place.checked_neg().unwrap_or(0);
            *register < GENERAL && below > before && below <= depth
        };
        let (added, pushed) = (&mut self.added, &mut self.pushed);
        added.clear();
        pushed.clear();
        for (register, place) in new.saved().filter(is_new) {
            if is_pushed(&(register, place)) {
                pushed.push((place, register));
            }
        }
        pushed.sort_unstable_by(|one, other| other.cmp(one));
        let mut reached = before;
        for (place, register) in pushed.drain(..) {
            let below = place.checked_neg().unwrap_or(0);
            // Two registers in one location cannot both be pushed there.
            let gap = below.checked_sub(8).and_then(|top| top.checked_sub(reached));
            let gap = gap.and_then(|gap| u32::try_from(gap).ok()).ok_or(Inexpressible::Below)?;
            allocate(gap, added);
            added.push(Operation::Push { register: number(register) });
            reached = below;
        }
        let rest = depth.checked_sub(reached).and_then(|rest| u32::try_from(rest).ok());
        allocate(rest.ok_or(Inexpressible::Below)?, added);
        if is_set {
            added.push(Operation::SetFrame);
        }
        let mut is_fixed = self.is_fixed;
        for (register, place) in new.saved().filter(is_new).filter(|saved| !is_pushed(saved)) {
            let offset = depth.checked_add(place).and_then(|offset| u32::try_from(offset).ok());
            let offset = offset.ok_or(Inexpressible::Below)?;
            is_fixed = true;
            added.push(match register.checked_sub(FIRST_XMM).map(u8::try_from) {
                Some(Ok(register)) => Operation::SaveXmm { register, offset },
                _ => Operation::Save { register: number(register), offset },
            });
        }

        let codes = added.iter().map(Operation::codes).fold(self.codes, usize::saturating_add);
        if codes > MOST_CODES {
            return Err(Inexpressible::Below);
        }
        self.operations.extend(added.drain(..).map(|operation| (at, operation)));
        (self.codes, self.depth, self.frame, self.is_fixed) = (codes, depth, frame, is_fixed);
        Ok(())
    }

    /// The assumed depth of `rsp` below the CFA where the frame register is set, and the distance from there up to
    /// the register in units. Saved registers are addressed by their distance from this depth, which cannot be
    /// negative. Therefore it is below everything that will be saved, if possible.
    fn frame_depth(&self, new: &State) -> Result<(i32, u8), Inexpressible> {
        let now = new.saved().map(|(_, place)| place).min().unwrap_or(0);
        let reach = |lowest: i32| {
            let needed = lowest.checked_neg()?.max(self.depth);
            let units =
                needed.checked_sub(new.distance)?.max(0).checked_add(UNIT.checked_sub(1)?)?;
            let units = units.checked_div(UNIT).filter(|units| *units <= MOST_UNITS)?;
            let depth = units.checked_mul(UNIT)?.checked_add(new.distance)?;
            Some((depth, u8::try_from(units).ok()?))
        };
        reach(self.lowest).or_else(|| reach(now)).ok_or(Inexpressible::FarFromFrame)
    }

    /// Appends the UNWIND_INFO.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.try_reserve(MOST_BYTES).map_err(|_| Error::Memory)?;
        let (register, units) = self.frame.unwrap_or((0, 0));
        let size = self.operations.last().map_or(0, |(at, _)| *at);
        // `add` limits their number.
        let codes = u8::try_from(self.codes).unwrap_or(u8::MAX);
        out.extend_from_slice(&[VERSION, size, codes, units << 4 | register]);
        for (at, operation) in self.operations.iter().rev() {
            operation.write(*at, out);
        }
        if !self.codes.is_multiple_of(2) {
            out.extend_from_slice(&[0; 2]);
        }
        Ok(())
    }
}

fn with_reserved<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(count).map_err(|_| Error::Memory)?;
    Ok(buffer)
}

impl Operation {
    /// The number of codes that it takes.
    fn codes(&self) -> usize {
        match *self {
            Self::Push { .. } | Self::SetFrame => 1,
            Self::Allocate { bytes } if bytes <= 128 => 1,
            Self::Allocate { bytes } => scaled(bytes, 8).map_or(3, |_| 2),
            Self::Save { offset, .. } => scaled(offset, 8).map_or(3, |_| 2),
            Self::SaveXmm { offset, .. } => scaled(offset, 16).map_or(3, |_| 2),
        }
    }

    fn write(&self, at: u8, out: &mut Vec<u8>) {
        let mut code =
            |operation: u8, info: u8| out.extend_from_slice(&[at, info << 4 | operation]);
        let number = match *self {
            Self::Push { register } => return code(PUSH_NONVOL, register),
            Self::SetFrame => return code(SET_FPREG, 0),
            Self::Allocate { bytes } => {
                let small = u8::try_from(bytes / 8).ok().and_then(|units| units.checked_sub(1));
                if let Some(small @ ..=15) = small {
                    return code(ALLOC_SMALL, small);
                }
                let units = scaled(bytes, 8);
                code(ALLOC_LARGE, u8::from(units.is_none()));
                units.ok_or(bytes)
            }
            Self::Save { register, offset } => {
                let units = scaled(offset, 8);
                code(if units.is_some() { SAVE_NONVOL } else { SAVE_NONVOL_FAR }, register);
                units.ok_or(offset)
            }
            Self::SaveXmm { register, offset } => {
                let units = scaled(offset, 16);
                code(if units.is_some() { SAVE_XMM128 } else { SAVE_XMM128_FAR }, register);
                units.ok_or(offset)
            }
        };
        match number {
            Ok(units) => out.extend_from_slice(&units.to_le_bytes()),
            Err(bytes) => out.extend_from_slice(&bytes.to_le_bytes()),
        }
    }
}

/// A number of bytes in units, if it is a multiple and fits into a code.
fn scaled(bytes: u32, unit: u32) -> Option<u16> {
    let units = bytes.checked_div(unit).filter(|_| bytes.is_multiple_of(unit))?;
    u16::try_from(units).ok()
}

fn allocate(bytes: u32, operations: &mut Vec<Operation>) {
    if bytes > 0 {
        operations.push(Operation::Allocate { bytes });
    }
}

/// The instruction-encoding number of a general register.
fn number(register: u16) -> u8 {
    NUMBERS.get(usize::from(register)).copied().unwrap_or(0)
}
