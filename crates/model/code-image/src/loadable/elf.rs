//! A shared object for `dlopen`.
//!
//! ```text
//! 0       headers, build-id                                     R
//! 0x1000  .text                                                 R+X
//!         .gnu.hash .dynsym .dynstr .eh_frame_hdr .eh_frame     R
//!         .dynamic                                              R+W
//!         .debug_* .strtab .symtab .shstrtab                    not mapped
//! ```
//!
//! Offsets in the file equal virtual addresses, as in images.

use super::written::{LARGEST, Written};
use jit_code::elf_machine;
use std::io::{Seek, Write};

use fallible::Vec;

use super::symbols::Symbol;
use crate::elf::headers::{self, Section, Segment};
use crate::elf::object::Object;
use crate::elf::symbols::SymbolTable;
use crate::encode::Encoder;
use crate::error::Error;
use crate::gathered::Gathered;
use crate::place::PAGE;
use crate::target::Target;

/// Index of `.text` in the section header table: behind the null section and the build-id.
const TEXT_SECTION: u16 = 2;

/// Writes everything except the text, of which `text_in_file` bytes are in the file.
pub(super) fn write<W: Write + Seek>(
    gathered: Gathered<W>,
    symbols: &[Symbol<'_>],
    text_in_file: u64,
) -> Result<Written, Error> {
    let Gathered { mut out, target, place, debug_info, unwind, .. } = gathered;
    let page = largest_page(target);
    let word = u64::from(target.address_size());
    let text_end = place.text_end();
    let text_file_end = PAGE.saturating_add(text_in_file);
    let mut summary = unwind.summary();
    let Dynamic { hash, symbols: dynamic_symbols } = Dynamic::new(target, symbols);

    let begin = text_end.next_multiple_of(page);
    let symtab_at = begin.saturating_add(hash.len()).next_multiple_of(word);
    let strtab_at = symtab_at.saturating_add(dynamic_symbols.symtab.len());
    let names_size = dynamic_symbols.strtab.len() as u64;
    let names_end = strtab_at.saturating_add(names_size);
    let frames_at = names_end.next_multiple_of(8);
    let has_frames = !unwind.is_empty();
    let end = if has_frames { frames_at.saturating_add(unwind.size()) } else { names_end };
    let dynamic_at = end.next_multiple_of(page);

    let mut dynamic = Encoder::new(target);
    for (tag, value) in [
        (DT_GNU_HASH, begin),
        (DT_SYMTAB, symtab_at),
        (DT_SYMENT, headers::symbol_size(target)),
        (DT_STRTAB, strtab_at),
        (DT_STRSZ, names_size),
        (DT_NULL, 0),
    ] {
        dynamic.word(tag);
        dynamic.word(value);
    }
    if dynamic_at.saturating_add(dynamic.len()) > LARGEST {
        return Err(Error::TooLarge { what: "object", size: dynamic_at });
    }

    let mut object = Object::new(target, &mut out, text_file_end);
    object.head_segment(page);
    object.text(text_end.saturating_sub(PAGE), text_in_file, text_in_file > 0, page);
    let mapped = |kind, flags, address, size, align| Segment {
        kind,
        flags,
        address,
        file_size: size,
        memory_size: size,
        align,
    };
    let (read, write) = (headers::PF_R, headers::PF_R | headers::PF_W);
    object.segment(mapped(headers::PT_LOAD, read, begin, end.saturating_sub(begin), page));
    object.segment(mapped(headers::PT_LOAD, write, dynamic_at, dynamic.len(), page));
    object.segment(mapped(headers::PT_DYNAMIC, write, dynamic_at, dynamic.len(), word));
    object.note_segment();

    // The sections' indices follow from their order.
    let (symtab_section, strtab_section) = (4, 5);
    object.mapped(".gnu.hash", begin, &hash.bytes, word, |usual| Section {
        kind: headers::SHT_GNU_HASH,
        link: symtab_section,
        // With 64-bit addresses the section has words of two sizes, so there is no entry size.
        entry_size: if target.is_64 { 0 } else { 4 },
        ..usual
    })?;
    object.mapped(".dynsym", symtab_at, &dynamic_symbols.symtab.bytes, word, |usual| Section {
        kind: headers::SHT_DYNSYM,
        ..headers::symbol_section(usual, strtab_section, target)
    })?;
    object.mapped(".dynstr", strtab_at, &dynamic_symbols.strtab, 1, |usual| Section {
        kind: headers::SHT_STRTAB,
        ..usual
    })?;
    if has_frames {
        summary = object.unwind_tables(unwind, frames_at)?;
    }
    object.mapped(".dynamic", dynamic_at, &dynamic.bytes, word, |usual| Section {
        kind: headers::SHT_DYNAMIC,
        flags: headers::SHF_ALLOC | headers::SHF_WRITE,
        link: strtab_section,
        entry_size: word.saturating_mul(2),
        ..usual
    })?;
    object.segment(headers::NO_EXECUTABLE_STACK);
    if let Some(debug_info) = debug_info {
        object.debug_info(debug_info.finish())?;
    }
    let mut table = SymbolTable::new(target);
    for symbol in symbols {
        table.add(symbol.value, symbol.size, symbol.name, TEXT_SECTION);
    }
    object.symbols(&table)?;
    let (head, id, file_size) = object.finish()?;
    out.finish(&head)?;
    Ok(Written { id, file_size, unwind: summary })
}

const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// The largest page size of any kernel for this machine: ranges with different protection must not share a page.
fn largest_page(target: Target) -> u64 {
    match target.machine {
        elf_machine::I386 | elf_machine::S390 | elf_machine::X86_64 => PAGE,
        _ => 0x1_0000,
    }
}

/// The exported symbols, and the hash table for looking them up.
struct Dynamic {
    hash: Encoder,
    symbols: SymbolTable,
}

impl Dynamic {
    /// Uses the layout of `.gnu.hash`. Symbols are in the order of their buckets. A filter rejects most names that
    /// are not present. Each bucket has the number of its first symbol. Each symbol has its hash, whose lowest bit
    /// marks the last symbol of its bucket.
    fn new(target: Target, all: &[Symbol<'_>]) -> Self {
        /// The hash is shifted by this for a symbol's second bit in the filter.
        const SHIFT: u32 = 6;
        let count = all.iter().filter(|symbol| symbol.is_exported).count();
        let buckets = (count as u32).div_ceil(2).max(1);
        let bucket = |hash: u32| hash.checked_rem(buckets).unwrap_or_default();
        let mut exported: Vec<(u32, &Symbol<'_>)> = all
            .iter()
            .filter(|symbol| symbol.is_exported)
            .map(|symbol| (gnu_hash(symbol.name), symbol))
            .collect();
        exported.sort_by_key(|(hash, _)| bucket(*hash));

        let bits = u32::from(target.address_size()) * 8;
        // About 12 bits of the filter for each symbol, of which two are set.
        let words = (count as u32).saturating_mul(12).div_ceil(bits).next_power_of_two();
        let mut filter = fallible::vec![0_u64; words as usize];
        let mut first = fallible::vec![0_u32; buckets as usize];
        let mut chains = Encoder::new(target);
        let mut symbols = SymbolTable::new(target);
        let mut rest = exported.iter().peekable();
        let mut number = 1_u32;
        while let Some((hash, symbol)) = rest.next() {
            if let Some(word) = filter.get_mut(((hash / bits) & (words - 1)) as usize) {
                *word |= 1 << (hash % bits) | 1 << ((hash >> SHIFT) % bits);
            }
            if let Some(first) = first.get_mut(bucket(*hash) as usize)
                && *first == 0
            {
                *first = number;
            }
            let is_last = rest.peek().is_none_or(|(next, _)| bucket(*next) != bucket(*hash));
            chains.u32(hash & !1 | u32::from(is_last));
            symbols.add(symbol.value, symbol.size, symbol.name, TEXT_SECTION);
            number = number.saturating_add(1);
        }

        let mut hash = Encoder::new(target);
        let first_symbol = 1;
        for field in [buckets, first_symbol, words, SHIFT] {
            hash.u32(field);
        }
        filter.into_iter().for_each(|word| hash.word(word));
        first.into_iter().for_each(|first| hash.u32(first));
        hash.raw(&chains.bytes);
        Self { hash, symbols }
    }
}

fn gnu_hash(name: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    name.iter().fold(5381, step)
}
