//! Sections that the caller provides: finds the position of the only FDE, and the end of the entries.

use crate::error::Error;

/// The length value that indicates a 64-bit length.
const LONG: u32 = 0xffff_ffff;

/// Offset of the only FDE, and the end of the entries: before the terminator, if there is one.
pub(crate) fn only_fde(section: &[u8]) -> Result<(u32, usize), Error> {
    let word = |at: usize| {
        let bytes = section.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let mut found = None;
    let mut at = 0_usize;
    while at < section.len() {
        let length = word(at).filter(|length| *length != LONG).ok_or(Error::Ready)?;
        if length == 0 {
            break;
        }
        let body = at.checked_add(4).ok_or(Error::Ready)?;
        let end = usize::try_from(length).ok().and_then(|length| body.checked_add(length));
        let end = end.filter(|end| *end <= section.len()).ok_or(Error::Ready)?;
        let is_fde = length >= 4 && word(body).ok_or(Error::Ready)? != 0;
        if is_fde {
            let offset = u32::try_from(at).map_err(|_| Error::TooFar)?;
            if found.replace(offset).is_some() {
                return Err(Error::Ready);
            }
        }
        at = end;
    }
    Ok((found.ok_or(Error::Ready)?, at))
}
