//! Entries with absolute addresses, which are valid at any position.

use alloc::vec::Vec;

use crate::error::Error;
use crate::fde;
use crate::machine::Machine;
use crate::reader::Reader;
use crate::reserve;
use jit_code::Unwind;

/// Offset of the pointer encoding in a CIE, and its value for absolute addresses (`DW_EH_PE_absptr`).
const ENCODING_AT: usize = 16;
const WHOLE: u8 = 0;
/// The sizes of entries are multiples of this.
const UNIT: usize = 8;
/// Total size of length, CIE pointer, address and size.
const FIELDS: usize = 24;
/// By how much these fields are smaller in an entry with relative addresses.
const LESS: usize = 8;

/// Appends a CIE and the FDE of one code at `address`, with absolute 64-bit addresses: they may be copied anywhere.
/// Their sizes are multiples of 8. No terminator follows.
///
/// # Errors
/// See [`Error`]; a ready section is [`Error::ReadyAsEntry`]. After an error, `out` is unchanged.
pub fn absolute(
    machine: Machine,
    address: u64,
    size: u64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    absolute_for(Reader::Unwinder, machine, address, size, unwind, out)
}

/// Like [`absolute`], for this reader.
///
/// # Errors
/// As for [`absolute`].
pub fn absolute_for(
    reader: Reader,
    machine: Machine,
    address: u64,
    size: u64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    reserve::reserve(unwind, out)?;
    let start = out.len();
    let result = append(reader, machine, address, size, unwind, out).unwrap_or(Err(Error::TooFar));
    result.inspect_err(|_| out.truncate(start))
}

/// `None` if a size does not fit into its field.
fn append(
    reader: Reader,
    machine: Machine,
    address: u64,
    size: u64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Option<Result<(), Error>> {
    let cie = out.len();
    out.extend_from_slice(machine.cie());
    *out.get_mut(cie.checked_add(ENCODING_AT)?)? = WHOLE;
    close(out, cie)?;

    let entry = out.len();
    let back = u32::try_from(entry.checked_sub(cie)?.checked_add(4)?).ok()?;
    // The fields of an entry with relative addresses are this much shorter. With these bytes before them, the
    // instructions are at their final position.
    out.extend_from_slice(&[0; LESS]);
    if let Err(error) = fde::append(reader, machine, 0, 8, size, unwind, out) {
        return Some(Err(error));
    }
    let fields = out.get_mut(entry..entry.checked_add(FIELDS)?)?;
    let (_, behind) = fields.split_at_mut_checked(4)?;
    let (pointer, behind) = behind.split_at_mut_checked(4)?;
    let (begin, length) = behind.split_at_mut_checked(8)?;
    pointer.copy_from_slice(&back.to_le_bytes());
    begin.copy_from_slice(&address.to_le_bytes());
    length.copy_from_slice(&size.to_le_bytes());
    close(out, entry)?;
    Some(Ok(()))
}

/// Pads the entry at `start`, and writes its length.
fn close(out: &mut Vec<u8>, start: usize) -> Option<()> {
    while !out.len().checked_sub(start)?.is_multiple_of(UNIT) {
        out.push(0); // DW_CFA_nop
    }
    let length = u32::try_from(out.len().checked_sub(start)?.checked_sub(4)?).ok()?;
    *out.get_mut(start..)?.first_chunk_mut()? = length.to_le_bytes();
    Some(())
}
