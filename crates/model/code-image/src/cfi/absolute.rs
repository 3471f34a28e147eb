//! One code's `.eh_frame` with absolute addresses, valid at any position: sections are assembled from copies of it.

use fallible::Vec;

use super::pointer::Encoding;
use super::tables::{UnwindTables, pad};
use crate::code::VisibleCode;
use crate::encode::Encoder;
use crate::target::Target;

/// Size of the length, and of the id or the distance of the CIE.
const PREFIX: u64 = 8;

/// Encodes what `eh_frame` describes of the visible part of `code`: entries without a terminator, aligned to the size
/// of an address. What cannot be used is left out.
pub(crate) fn absolute(target: Target, code: &VisibleCode<'_>, eh_frame: &[u8]) -> Encoder {
    let mut tables = UnwindTables::with_encoding(target, Encoding::ADDRESS);
    tables.add(code, eh_frame, |address| address);
    let mut out = Encoder::new(target);
    if tables.fdes.is_empty() {
        return out;
    }
    let unit = u64::from(target.address_size());
    let mut places = Vec::with_capacity(tables.cies.written.len());
    for cie in &tables.cies.written {
        places.push(out.len());
        let size = PREFIX.saturating_add(cie.len() as u64).next_multiple_of(unit);
        let end = out.len().saturating_add(size);
        out.u32(size.saturating_sub(4) as u32);
        out.u32(0); // marks a CIE
        out.raw(cie);
        pad(&mut out, end);
    }
    for fde in &tables.fdes {
        let instructions = tables.instructions.get(fde.instructions.clone()).unwrap_or_default();
        let fields = PREFIX.saturating_add(unit.saturating_mul(2)).saturating_add(1);
        let size = fields.saturating_add(instructions.len() as u64).next_multiple_of(unit);
        let at = out.len();
        let cie = places.get(fde.cie).copied().unwrap_or_default();
        out.u32(size.saturating_sub(4) as u32);
        out.u32(at.saturating_add(4).saturating_sub(cie) as u32);
        out.word(fde.start);
        out.word(fde.size.into());
        out.uleb(0); // no augmentation data
        out.raw(instructions);
        pad(&mut out, at.saturating_add(size));
    }
    out
}

/// Changes the FDEs that [`absolute`] wrote so that they describe no code.
pub(crate) fn tombstone(target: Target, mut entries: &mut [u8]) {
    let addresses = usize::from(target.address_size()).saturating_mul(2);
    let number = |bytes: &[u8], at: usize| {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match target.endian {
            crate::target::Endian::Little => u32::from_le_bytes(field),
            crate::target::Endian::Big => u32::from_be_bytes(field),
        })
    };
    while let (Some(length), Some(id)) = (number(entries, 0), number(entries, 4)) {
        let size = (length as usize).saturating_add(4);
        let Some((entry, rest)) = std::mem::take(&mut entries).split_at_mut_checked(size) else {
            return;
        };
        if id != 0
            && let Some(place) = entry.get_mut(8..8_usize.saturating_add(addresses))
        {
            place.fill(0);
        }
        entries = rest;
    }
}
