//! The entry (FDE) of one code.

use alloc::vec::Vec;

use crate::error::Error;
use crate::machine::Machine;
use crate::program;
use crate::prologue::Prologue;
use crate::reader::Reader;
use crate::reserve;
use jit_code::Unwind;

/// Offset of the code's address in an entry.
const BEGIN_AT: i64 = 8;
/// Offset of the distance of the CIE.
const CIE_POINTER_AT: u32 = 4;
/// Size of the length field.
const LENGTH_SIZE: usize = 4;

/// Appends the entry that describes one code, for sections that describe many.
///
/// Such a section begins with [`Machine::cie`] and ends with four zeros. The entry is `cie_to_fde` bytes behind the
/// start of the CIE, and the code starts `fde_to_code` bytes behind the entry (negative if it is below). The entry's
/// size is a multiple of 4.
///
/// # Errors
/// See [`Error`]. After an error, `out` is unchanged.
pub fn fde(
    machine: Machine,
    cie_to_fde: u32,
    fde_to_code: i64,
    code_size: u64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    reserve::reserve(unwind, out)?;
    let start = out.len();
    append(Reader::Unwinder, machine, cie_to_fde, fde_to_code, code_size, unwind, out)
        .inspect_err(|_| out.truncate(start))
}

/// Like [`fde`], with capacity already reserved. After an error, `out` may contain a part of the entry.
pub(crate) fn append(
    reader: Reader,
    machine: Machine,
    cie_to_fde: u32,
    fde_to_code: i64,
    code_size: u64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let cie_pointer = cie_to_fde.checked_add(CIE_POINTER_AT).ok_or(Error::TooFar)?;
    let begin = fde_to_code.checked_sub(BEGIN_AT).and_then(|begin| i32::try_from(begin).ok());
    let begin = begin.ok_or(Error::TooFar)?;
    let size = u32::try_from(code_size).map_err(|_| Error::TooFar)?;
    if reader == Reader::Unwinder
        && let Unwind::FramePointer { prologue, signed: false } = unwind
        && let Some(fde) = Prologue::fde(machine, *prologue, cie_pointer, begin, size)
    {
        out.extend_from_slice(&fde);
        return Ok(());
    }

    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_SIZE]);
    out.extend_from_slice(&cie_pointer.to_le_bytes());
    out.extend_from_slice(&begin.to_le_bytes());
    out.extend_from_slice(&size.to_le_bytes());
    out.push(0); // no augmentation data
    match unwind {
        Unwind::FramePointer { prologue, signed } => {
            let rows = Prologue::rows(machine, *prologue, *signed);
            // A code may end within its prologue.
            let is_whole = rows.last().is_some_and(|body| body.offset < size);
            let rows = rows.iter().take_while(|row| row.offset < size);
            program::encode(machine, size, rows, out)?;
            if reader == Reader::Debugger && is_whole {
                program::undefine(machine.preserved(), out);
            }
        }
        Unwind::FramePointerSaving { prologue, signed, saved_from, saved } => {
            let all = Prologue::all_saved(machine, saved)?;
            let rows = Prologue::rows_saving(machine, (*prologue, *signed), *saved_from, &all);
            let rows = rows.iter().take_while(|row| row.offset < size);
            program::encode(machine, size, rows, out)?;
        }
        Unwind::FramePointerAlways { signed } => {
            if size > 0 {
                program::encode(machine, size, &[Prologue::always(machine, *signed)], out)?;
                if reader == Reader::Debugger {
                    program::undefine(machine.preserved(), out);
                }
            }
        }
        Unwind::Rows(rows) => program::encode(machine, size, *rows, out)?,
        Unwind::EhFrame(_) => return Err(Error::ReadyAsEntry),
        _ => return Err(Error::Unsupported),
    }

    let mut length = out.len().saturating_sub(start);
    while !length.is_multiple_of(4) {
        out.push(0); // DW_CFA_nop
        length = length.saturating_add(1);
    }
    let length = i32::try_from(length.saturating_sub(LENGTH_SIZE)).map_err(|_| Error::TooFar)?;
    if let Some(field) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *field = length.to_le_bytes();
    }
    Ok(())
}
