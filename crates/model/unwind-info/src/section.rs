//! The `.eh_frame` of one code.

use alloc::vec::Vec;

use crate::error::Error;
use crate::fde;
use crate::header::{EH_FRAME_HDR_SIZE, eh_frame_hdr};
use crate::machine::{CIE_AARCH64_KEY_B, Machine};
use crate::reader::Reader;
use crate::ready;
use crate::reserve;
use jit_code::Unwind;

/// The zero length that ends the section.
const TERMINATOR: [u8; 4] = [0; 4];

/// The output of [`eh_frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EhFrame {
    /// Size of the section in bytes.
    pub size: usize,
    /// Offset of the code's entry (FDE) in it, as needed for `__register_frame` and search tables.
    pub fde: u32,
}

/// Sizes of the output of [`behind_code`], in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// Bytes of `.eh_frame`.
    pub eh_frame: usize,
    /// Bytes of `.eh_frame_hdr`.
    pub eh_frame_hdr: usize,
}

impl Tables {
    /// Total size in bytes: UNWINDING_INFO's `unwinding_size`, and the space that the tables need behind the code.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.eh_frame.saturating_add(self.eh_frame_hdr)
    }
}

/// Appends a complete `.eh_frame` section for one code: a CIE, an FDE and the terminator.
///
/// The section is for a position `code_to_frame` bytes behind the start of the code (negative if it is below).
///
/// # Errors
/// See [`Error`]. After an error, `out` is unchanged.
pub fn eh_frame(
    machine: Machine,
    code_size: u64,
    code_to_frame: i64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<EhFrame, Error> {
    eh_frame_for(Reader::Unwinder, machine, code_size, code_to_frame, unwind, out)
}

/// Like [`eh_frame`], for this reader.
///
/// # Errors
/// As for [`eh_frame`].
pub fn eh_frame_for(
    reader: Reader,
    machine: Machine,
    code_size: u64,
    code_to_frame: i64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<EhFrame, Error> {
    reserve::reserve(unwind, out)?;
    within_reserved(reader, machine, machine.cie(), code_size, code_to_frame, unwind, out)
}

/// Like [`eh_frame`], for AArch64 code that signs its return addresses with key B (`pacibsp`), as V8 does, and not with key A:
/// "signed" in the description means this key. Announce the section as [`Unwind::EhFrame`].
///
/// The CIE's augmentation has the letter `B`. A process-wide unwinder that authenticates by the wrong key ends the process.
///
/// # Errors
/// See [`Error`]; a ready section is [`Error::ReadyAsEntry`]. After an error, `out` is unchanged.
pub fn eh_frame_key_b(
    code_size: u64,
    code_to_frame: i64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<EhFrame, Error> {
    if matches!(unwind, Unwind::EhFrame(_)) {
        return Err(Error::ReadyAsEntry);
    }
    reserve::reserve(unwind, out)?;
    let (reader, machine) = (Reader::Unwinder, Machine::Aarch64);
    within_reserved(reader, machine, &CIE_AARCH64_KEY_B, code_size, code_to_frame, unwind, out)
}

/// Like [`eh_frame`], with capacity already reserved.
fn within_reserved(
    reader: Reader,
    machine: Machine,
    cie: &[u8],
    code_size: u64,
    code_to_frame: i64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<EhFrame, Error> {
    let start = out.len();
    let offset = if let Unwind::EhFrame(section) = unwind {
        let (offset, end) = ready::only_fde(section)?;
        out.extend_from_slice(section.get(..end).ok_or(Error::Ready)?);
        offset
    } else {
        let offset = u32::try_from(cie.len()).map_err(|_| Error::TooFar)?;
        let code_to_fde = code_to_frame.checked_add(offset.into()).ok_or(Error::TooFar)?;
        let fde_to_code = code_to_fde.checked_neg().ok_or(Error::TooFar)?;
        out.extend_from_slice(cie);
        fde::append(reader, machine, offset, fde_to_code, code_size, unwind, out)
            .inspect_err(|_| out.truncate(start))?;
        offset
    };
    out.extend_from_slice(&TERMINATOR);
    Ok(EhFrame { size: out.len().saturating_sub(start), fde: offset })
}

/// Distance from the start of a code of this size to its tables, for [`behind_code`]: the next multiple of 8. `None`
/// on overflow.
#[must_use]
pub const fn offset_behind(code_size: u64) -> Option<u64> {
    code_size.checked_next_multiple_of(8)
}

/// Appends `.eh_frame` and directly behind it `.eh_frame_hdr`, for the position [`offset_behind`] a code: the data of
/// a jitdump's UNWINDING_INFO.
///
/// perf expects `.eh_frame` first, contrary to the specification of jitdump.
///
/// # Errors
/// See [`Error`]. After an error, `out` is unchanged.
pub fn behind_code(
    machine: Machine,
    code_size: u64,
    unwind: &Unwind<'_>,
    out: &mut Vec<u8>,
) -> Result<Tables, Error> {
    reserve::reserve(unwind, out)?;
    let start = out.len();
    let code_to_frame = offset_behind(code_size).and_then(|offset| i64::try_from(offset).ok());
    let code_to_frame = code_to_frame.ok_or(Error::TooFar)?;
    let (reader, cie) = (Reader::Unwinder, machine.cie());
    let frame = within_reserved(reader, machine, cie, code_size, code_to_frame, unwind, out)?;
    let header = i64::try_from(frame.size)
        .ok()
        .and_then(|size| code_to_frame.checked_add(size))
        .ok_or(Error::TooFar)
        .and_then(|code_to_header| eh_frame_hdr(code_to_header, code_to_frame, frame.fde))
        .inspect_err(|_| out.truncate(start))?;
    out.extend_from_slice(&header);
    Ok(Tables { eh_frame: frame.size, eh_frame_hdr: EH_FRAME_HDR_SIZE })
}
