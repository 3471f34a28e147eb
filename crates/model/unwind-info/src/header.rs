//! The `.eh_frame_hdr` of one code, through which unwinders find its `.eh_frame`.

use crate::error::Error;

/// Size of the output of [`eh_frame_hdr`].
pub const EH_FRAME_HDR_SIZE: usize = 20;

/// Version 1; `DW_EH_PE_pcrel | DW_EH_PE_sdata4` for the section, `DW_EH_PE_udata4` for the count,
/// `DW_EH_PE_datarel | DW_EH_PE_sdata4` for the table.
const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Encodes a header with a search table of one row: the code and the FDE at offset `fde` in its `.eh_frame`.
///
/// The header is for a position `code_to_header` bytes behind the start of the code; `.eh_frame` is `code_to_frame`
/// bytes behind the start of the code.
///
/// # Errors
/// [`Error::TooFar`] if they are more than 2 GiB apart.
pub fn eh_frame_hdr(
    code_to_header: i64,
    code_to_frame: i64,
    fde: u32,
) -> Result<[u8; EH_FRAME_HDR_SIZE], Error> {
    let short = |distance: Option<i64>| {
        let short = distance.and_then(|distance| i32::try_from(distance).ok());
        short.map(i32::to_le_bytes).ok_or(Error::TooFar)
    };
    let to_frame = code_to_frame.checked_sub(code_to_header);
    // Relative to the field itself, which is behind the encodings.
    let frame = short(to_frame.and_then(|distance| distance.checked_sub(4)))?;
    let to_code = short(code_to_header.checked_neg())?;
    let to_fde = short(to_frame.and_then(|distance| distance.checked_add(fde.into())))?;
    let mut header = [0; EH_FRAME_HDR_SIZE];
    header[0..4].copy_from_slice(&ENCODINGS);
    header[4..8].copy_from_slice(&frame);
    header[8..12].copy_from_slice(&1_u32.to_le_bytes());
    header[12..16].copy_from_slice(&to_code);
    header[16..20].copy_from_slice(&to_fde);
    Ok(header)
}
