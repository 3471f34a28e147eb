//! Sections as they are in the process: runtimes register objects as the compiler wrote them, with the addresses of sections alone.

use std::borrow::Cow;

use crate::elf::{SECTION_RELOCATIONS, Section, Symbol};
use crate::fields::{u32_at, u64_at};

/// The bytes of the section with number `number`, as they are at `address`.
pub fn relocated<'o>(
    object: &'o [u8],
    sections: &[Section],
    number: usize,
    address: u64,
) -> Option<Cow<'o, [u8]>> {
    let section = sections.get(number)?;
    let mut bytes = Cow::Borrowed(section.bytes(object)?);
    let is_of_this = |relocations: &&Section| {
        relocations.kind == SECTION_RELOCATIONS
            && usize::try_from(relocations.info).is_ok_and(|info| info == number)
    };
    let Some(relocations) = sections.iter().find(is_of_this) else { return Some(bytes) };
    let symbols = sections.get(usize::try_from(relocations.link).ok()?)?.bytes(object)?;
    let symbols = symbols.as_chunks::<{ Symbol::SIZE }>().0;
    for relocation in relocations.bytes(object)?.as_chunks::<24>().0 {
        let (offset, addend) = (u64_at(relocation, 0), u64_at(relocation, 16));
        let (kind, symbol) = (u32_at(relocation, 8), u32_at(relocation, 12));
        let symbol = usize::try_from(symbol).ok().and_then(|at| symbols.get(at));
        let Some(symbol) = symbol.map(Symbol::parse) else { continue };
        let base = sections.get(usize::from(symbol.section)).map_or(0, |section| section.address);
        let value = base.wrapping_add(symbol.value).wrapping_add(addend);
        let relative = value.wrapping_sub(address.wrapping_add(offset));
        // In the order of x86-64's and AArch64's ABI. Sections without code have no others.
        let (value, size) = match kind {
            1 | 257 => (value, 8),       // R_X86_64_64, R_AARCH64_ABS64
            10 | 11 | 258 => (value, 4), // R_X86_64_32, R_X86_64_32S, R_AARCH64_ABS32
            24 | 260 => (relative, 8),   // R_X86_64_PC64, R_AARCH64_PREL64
            2 | 261 => (relative, 4),    // R_X86_64_PC32, R_AARCH64_PREL32
            _ => continue,
        };
        let Ok(offset) = usize::try_from(offset) else { continue };
        let place = bytes.to_mut().get_mut(offset..).and_then(|rest| rest.get_mut(..size));
        if let (Some(place), Some(value)) = (place, value.to_le_bytes().get(..size)) {
            place.copy_from_slice(value);
        }
    }
    Some(bytes)
}
