//! The operations of a prologue, and their encoding.

use alloc::vec::Vec;

use super::state::{FIRST, GENERAL, State};
use crate::error::Inexpressible;

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
/// Codes of two bytes in one UNWIND_INFO.
const MOST_CODES: usize = 255;
/// The numbers that instructions have for registers, by those of the System V ABI.
const NUMBERS: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
const FIRST_XMM: u16 = 17;
/// A frame register is set to at most so many units of 16 bytes above `rsp`.
const MOST_UNITS: i32 = 15;
const UNIT: i32 = 16;

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Push {
        register: u8,
    },
    Allocate {
        bytes: u32,
    },
    /// Which one, and where, stands at the head.
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
    operations: Vec<(u8, Operation)>,
    codes: usize,
    /// The lowest place of anything that is saved in the code.
    lowest: i32,
    /// How far below the CFA `rsp` is, or was when the frame register was set.
    depth: i32,
    frame: Option<(u8, u8)>,
    /// Whether something was saved by its distance from there, which must stay then.
    is_fixed: bool,
}

impl Prologue {
    pub(super) fn new(lowest: i32) -> Self {
        Self {
            operations: Vec::new(),
            codes: 0,
            lowest,
            depth: FIRST.distance,
            frame: None,
            is_fixed: false,
        }
    }

    /// Adds what leads from one state to the next, at an offset. Where that fails this value is of no more use than before.
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

        let mut added = Vec::new();
        let is_new = |(register, _): &(u16, i32)| old.place(*register).is_none();
        // What was pushed lies in what is new, each at its depth; the rest of it is room.
        let is_pushed = |(register, place): &(u16, i32)| {
            let below = place.checked_neg().unwrap_or(0);
            *register < GENERAL && below > self.depth && below <= depth
        };
        let mut pushed: Vec<(i32, u16)> = Vec::new();
        for (register, place) in new.saved().filter(is_new) {
            if is_pushed(&(register, place)) {
                pushed.push((place, register));
            }
        }
        pushed.sort_unstable_by(|one, other| other.cmp(one));
        let mut reached = self.depth;
        for (place, register) in pushed {
            let below = place.checked_neg().unwrap_or(0);
            // Two registers in one place cannot both be pushed there.
            let gap = below.checked_sub(8).and_then(|top| top.checked_sub(reached));
            let gap = gap.and_then(|gap| u32::try_from(gap).ok()).ok_or(Inexpressible::Below)?;
            allocate(gap, &mut added);
            added.push(Operation::Push { register: number(register) });
            reached = below;
        }
        let rest = depth.checked_sub(reached).and_then(|rest| u32::try_from(rest).ok());
        allocate(rest.ok_or(Inexpressible::Below)?, &mut added);
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
        self.operations.extend(added.into_iter().map(|operation| (at, operation)));
        (self.codes, self.depth, self.frame, self.is_fixed) = (codes, depth, frame, is_fixed);
        Ok(())
    }

    /// How far below the CFA `rsp` is taken to be where the frame register is set, and how many units that is below
    /// the register. What is saved is told by its distance from there, which is not negative: so it is below
    /// all that will be saved, if it can be.
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
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (register, units) = self.frame.unwrap_or((0, 0));
        let size = self.operations.last().map_or(0, |(at, _)| *at);
        // They are at most so many: see `add`.
        let codes = u8::try_from(self.codes).unwrap_or(u8::MAX);
        out.extend_from_slice(&[VERSION, size, codes, units << 4 | register]);
        for (at, operation) in self.operations.iter().rev() {
            operation.write(*at, out);
        }
        if !self.codes.is_multiple_of(2) {
            out.extend_from_slice(&[0; 2]);
        }
    }
}

impl Operation {
    /// How many codes it takes.
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

/// A number of bytes in units, if it is one, and fits into a code.
fn scaled(bytes: u32, unit: u32) -> Option<u16> {
    let units = bytes.checked_div(unit).filter(|_| bytes.is_multiple_of(unit))?;
    u16::try_from(units).ok()
}

fn allocate(bytes: u32, operations: &mut Vec<Operation>) {
    if bytes > 0 {
        operations.push(Operation::Allocate { bytes });
    }
}

/// The number that instructions have for a general register.
fn number(register: u16) -> u8 {
    NUMBERS.get(usize::from(register)).copied().unwrap_or(0)
}
