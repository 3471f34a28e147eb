//! Reserves space for the output before the first byte is written. A refused allocation is then an error, and does
//! not abort the process.

use alloc::vec::Vec;

use crate::error::Error;
use jit_code::Unwind;

/// Enough for everything that does not depend on the description: a CIE, an FDE's fields, the instructions of a
/// prologue, padding, a terminator and an `.eh_frame_hdr`.
const FIXED: usize = 256;
/// Maximum size per row: an advance, the CFA's rule, a signed return address.
const ROW: usize = 16;
/// Maximum size per saved register: an instruction that saves it, and one that restores it.
const SAVED: usize = 9;

/// Reserves space for everything that describes one code.
pub(crate) fn reserve(unwind: &Unwind<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    out.try_reserve(most(unwind)).map_err(|_| Error::Memory)
}

/// Maximum number of bytes that are written.
fn most(unwind: &Unwind<'_>) -> usize {
    match unwind {
        Unwind::FramePointer { .. } | Unwind::FramePointerAlways { .. } => FIXED,
        Unwind::FramePointerSaving { saved, .. } => {
            FIXED.saturating_add(ROW).saturating_add(saved.len().saturating_mul(SAVED))
        }
        Unwind::Rows(rows) => rows.iter().fold(FIXED, |sum, row| {
            sum.saturating_add(ROW).saturating_add(row.saved.len().saturating_mul(SAVED))
        }),
        Unwind::EhFrame(section) => section.len().saturating_add(FIXED),
        _ => FIXED,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use crate::{Machine, Row, Unwind, behind_code};

    /// Rows that each need the longest instructions.
    #[test]
    fn the_reserved_space_suffices_for_the_longest_rows() {
        let far = [(100, i32::MIN), (101, i32::MAX - 7), (17, -1 << 30), (1, 1 << 30)];
        let near = [(100, 8), (2, -8)];
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let rows: Vec<Row<'_>> = (0..1000)
                .map(|number| {
                    Row::new(
                        number * 0x8_0000,
                        12 + (number % 2) as u16,
                        if number % 3 == 0 { i32::MIN } else { i32::MAX },
                    )
                    .saved(if number % 2 == 0 { &far } else { &near })
                    .signed(machine == Machine::Aarch64 && number % 2 == 0)
                })
                .collect();
            let unwind = Unwind::Rows(&rows);
            let mut out = Vec::new();
            behind_code(machine, 1 << 30, &unwind, &mut out).unwrap();
            let most = super::most(&unwind);
            assert!(out.len() <= most && out.len() > most / 2, "{} {most}", out.len());
        }
    }
}
