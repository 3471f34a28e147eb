//! The usual prologues, as rows and as encoded FDEs.

use alloc::vec::Vec;

use crate::error::Error;
use crate::machine::Machine;
use jit_code::Row;

/// The effect of a machine's usual prologue.
#[derive(Debug)]
pub(crate) struct Prologue {
    /// Size of the instruction that saves the frame pointer.
    save: u8,
    /// Size of the instruction that sets it.
    set: u8,
    /// The registers saved by then.
    saved: &'static [(u16, i32)],
    /// The FDE of a code with this prologue, see [`Prologue::fde`].
    fde: [u8; FDE_SIZE],
}

/// The distance of the CFA from the frame pointer.
const FRAME: i32 = 16;

/// Size of the encoded FDE.
pub(crate) const FDE_SIZE: usize = 28;

/// The largest advance that fits into `DW_CFA_advance_loc`.
const ADVANCE_MAX: u32 = 63;

impl Machine {
    pub(crate) const fn prologue(self) -> &'static Prologue {
        match self {
            Self::X86_64 => &Prologue::X86_64,
            Self::Aarch64 => &Prologue::AARCH64,
        }
    }
}

impl Prologue {
    pub(crate) const X86_64: Self = Self {
        save: 1,
        set: 3,
        saved: &[(6, -16)],
        fde: [
            24, 0, 0, 0, // length
            0, 0, 0, 0, // distance of the CIE, see `fde`
            0, 0, 0, 0, // distance of the code
            0, 0, 0, 0, // its size
            0, // no augmentation data
            0x40, 0x0e, 16, 0x86, 2, // behind `push rbp`: CFA = rsp + 16, rbp at CFA - 16
            0x43, 0x0d, 6, // behind `mov rbp, rsp`: CFA = rbp + 16
            0, 0, 0,
        ],
    };
    pub(crate) const AARCH64: Self = Self {
        save: 4,
        set: 4,
        saved: &[(29, -16), (30, -8)],
        fde: [
            24, 0, 0, 0, // length
            0, 0, 0, 0, // distance of the CIE, see `fde`
            0, 0, 0, 0, // distance of the code
            0, 0, 0, 0, // its size
            0, // no augmentation data
            0x40, 0x0e, 16, 0x9d, 2, 0x9e,
            1, // behind `stp`: CFA = sp + 16, x29 and x30 below
            0x41, 0x0d, 29, // behind `mov x29, sp`: CFA = x29 + 16
            0,
        ],
    };

    /// The FDE of a code that has its prologue at the offset `at` and signs nothing. The bytes are the same as those
    /// encoded from the rows. `None` if `at` is too large for this, or if the code ends within the prologue.
    pub(crate) fn fde(
        machine: Machine,
        at: u32,
        cie_pointer: u32,
        begin: i32,
        size: u32,
    ) -> Option<[u8; FDE_SIZE]> {
        let Self { save, set, fde, .. } = machine.prologue();
        let saved = at.checked_add(u32::from(*save))?;
        if saved.checked_add(u32::from(*set))? >= size {
            return None;
        }
        let unit = machine.code_alignment();
        let advance = saved.checked_div(unit).filter(|advance| *advance <= ADVANCE_MAX)?;
        if !at.is_multiple_of(unit) {
            return None;
        }
        let mut fde = *fde;
        fde[4..8].copy_from_slice(&cie_pointer.to_le_bytes());
        fde[8..12].copy_from_slice(&begin.to_le_bytes());
        fde[12..16].copy_from_slice(&size.to_le_bytes());
        fde[17] |= u8::try_from(advance).ok()?;
        Some(fde)
    }

    /// The states of the prologue at the offset `at`.
    pub(crate) fn rows(machine: Machine, at: u32, signed: bool) -> [Row<'static>; 3] {
        let Self { save, set, saved, .. } = machine.prologue();
        let behind_save = at.saturating_add((*save).into());
        let behind_set = behind_save.saturating_add((*set).into());
        let row = |offset, cfa_register, cfa_offset| {
            Row::new(offset, cfa_register, cfa_offset).signed(signed)
        };
        [
            row(at, machine.stack_pointer(), machine.entry_cfa_offset()),
            row(behind_save, machine.stack_pointer(), FRAME).saved(saved),
            row(behind_set, machine.frame_pointer(), FRAME).saved(saved),
        ]
    }

    /// The registers that the usual prologue saves, and these.
    pub(crate) fn all_saved(
        machine: Machine,
        more: &[(u16, i32)],
    ) -> Result<Vec<(u16, i32)>, Error> {
        let usual = machine.prologue().saved;
        let mut all = Vec::new();
        all.try_reserve_exact(usual.len().saturating_add(more.len())).map_err(|_| Error::Memory)?;
        all.extend_from_slice(usual);
        all.extend_from_slice(more);
        Ok(all)
    }

    /// The states of the prologue at the offset `at`, and that from `from` on, where `all` these registers are saved.
    pub(crate) fn rows_saving(
        machine: Machine,
        (at, signed): (u32, bool),
        from: u32,
        all: &[(u16, i32)],
    ) -> [Row<'_>; 4] {
        let [call, save, set] = Self::rows(machine, at, signed);
        let saving = Row::new(from, set.cfa_register, set.cfa_offset).saved(all).signed(signed);
        [call, save, set, saving]
    }

    /// The state behind the prologue, applied from the code's start on.
    pub(crate) fn always(machine: Machine, signed: bool) -> Row<'static> {
        let [_, _, mut set] = Self::rows(machine, 0, signed);
        set.offset = 0;
        set
    }
}
