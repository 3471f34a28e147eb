//! Generates an `.eh_frame_hdr` for an `.eh_frame` that has none.
//!
//! Unwinders look up FDEs through this header. If it is missing, perf keeps the tables for all later codes.

use alloc::vec::Vec;

use crate::endian::{Endian, Fields, to_u64};

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: relative to the position of the pointer, four bytes.
const PCREL_SDATA4: u8 = 0x1b;
/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: relative to the start of the header.
const DATAREL_SDATA4: u8 = 0x3b;
/// `DW_EH_PE_udata4`.
const UDATA4: u8 = 0x03;
/// `DW_EH_PE_omit`.
const OMIT: u8 = 0xff;

/// A row of the search table, as offsets from the start of `.eh_frame`.
struct Row {
    location: i64,
    fde: i64,
}

/// Generates the header for the position directly behind `eh_frame`. It has a search table if the pointers of all
/// FDEs could be read, as for the encoding that nearly all JIT compilers use. Without a search table, an unwinder
/// scans `.eh_frame` from its start.
pub(super) fn eh_frame_hdr(eh_frame: &[u8], endian: Endian) -> Vec<u8> {
    // The header's distance from the start of `.eh_frame`.
    let header = i64::try_from(eh_frame.len()).unwrap_or(i64::MAX);
    let rows = rows(eh_frame, endian).filter(|rows| !rows.is_empty());
    let mut out = Vec::new();
    let offset = |value: i64| i32::try_from(value).unwrap_or(0).cast_unsigned();
    let (count, table) = if rows.is_some() { (UDATA4, DATAREL_SDATA4) } else { (OMIT, OMIT) };
    out.extend_from_slice(&[1, PCREL_SDATA4, count, table]);
    out.extend_from_slice(&endian.put_u32(offset(header.saturating_add(4).saturating_neg())));
    if let Some(rows) = rows {
        out.extend_from_slice(&endian.put_u32(u32::try_from(rows.len()).unwrap_or(0)));
        for row in rows {
            for value in [row.location, row.fde] {
                out.extend_from_slice(&endian.put_u32(offset(value.saturating_sub(header))));
            }
        }
    }
    out
}

/// The FDEs, sorted by the address of their code; `None` if one cannot be read.
fn rows(eh_frame: &[u8], endian: Endian) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    let mut fields = Fields::new(eh_frame, endian);
    while !fields.rest.is_empty() {
        let at = position(eh_frame, &fields)?;
        let length = fields.u32()?;
        if length == 0 {
            break;
        }
        let id_at = position(eh_frame, &fields)?;
        let mut body = Fields::new(fields.take(length.into())?, endian);
        let id = body.u32()?;
        if id == 0 {
            continue;
        }
        let cie = usize::try_from(id_at.checked_sub(id.into())?).ok()?;
        is_pcrel_sdata4(Fields::new(eh_frame.get(cie..)?, endian))?;
        let pointer_at = id_at.checked_add(4)?;
        let location = pointer_at.checked_add(body.u32()?.cast_signed().into())?;
        rows.push(Row { location, fde: at });
    }
    rows.sort_by_key(|row| row.location);
    Some(rows)
}

fn position(eh_frame: &[u8], fields: &Fields<'_>) -> Option<i64> {
    i64::try_from(to_u64(eh_frame.len()).checked_sub(to_u64(fields.rest.len()))?).ok()
}

/// Returns `Some` if the CIE's FDEs have pointers of this encoding: its augmentation is `zR`, with or without letters
/// that do not affect pointers.
fn is_pcrel_sdata4(mut cie: Fields<'_>) -> Option<()> {
    let (_length, id) = (cie.u32()?, cie.u32()?);
    let _version = cie.u8()?;
    let augmentation = cie.c_str()?;
    let (_code_factor, _data_factor) = (leb128(&mut cie)?, leb128(&mut cie)?);
    let (_return_register, _size) = (leb128(&mut cie)?, leb128(&mut cie)?);
    let fits = id == 0 && matches!(augmentation, b"zR" | b"zRS") && cie.u8()? == PCREL_SDATA4;
    fits.then_some(())
}

/// Skips a LEB128 number.
fn leb128(fields: &mut Fields<'_>) -> Option<()> {
    while fields.u8()? & 0x80 != 0 {}
    Some(())
}
