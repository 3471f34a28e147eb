//! The object file of a region: only the parts that Valgrind needs, in file order.
//!
//! ```text
//! 0       file header, two program headers, section headers
//! 0x1000  .text: the region's pages
//!         .symtab .strtab .debug_abbrev .debug_info .debug_line .debug_frame .shstrtab
//! ```
//!
//! The first program header is the text, readable and executable. The second one is writable and has no bytes, but
//! Valgrind requires exactly one, and exactly one writable mapping of the file: its first page is sufficient. All
//! addresses are the real ones, so that a disassembly of the file has the addresses of a profile.

use std::io::IoSlice;

use fallible::Vec;

use crate::text::Text;
use crate::units;
use crate::window::PAGE;

/// Offset of the text.
pub(crate) const TEXT_AT: u64 = PAGE;
/// All sections, and the fields that are the same in all files: type, flags, link and info, alignment, entry size.
const SECTIONS: [(&str, [u64; 5]); 9] = [
    ("", [0; 5]),
    (".text", [PROGBITS, 2 | 4, 0, 16, 0]), // allocated, executable
    // The names are in the next section; only the first symbol is local.
    (".symtab", [SYMTAB, 0, 3 | 1 << 32, 8, SYMBOL as u64]),
    (".strtab", [STRTAB, 0, 0, 1, 0]),
    (".debug_abbrev", [PROGBITS, 0, 0, 1, 0]),
    (".debug_info", [PROGBITS, 0, 0, 1, 0]),
    (".debug_line", [PROGBITS, 0, 0, 1, 0]),
    (".debug_frame", [PROGBITS, 0, 0, 1, 0]),
    (".shstrtab", [STRTAB, 0, 0, 1, 0]),
];
const TEXT: usize = 1;
const PROGBITS: u64 = 1;
const SYMTAB: u64 = 2;
const STRTAB: u64 = 3;

/// Number of 64-bit words in a file header, a program header and a section header.
const FILE_HEADER: usize = 8;
const SEGMENT: usize = 7;
const SECTION: usize = 8;
/// Index of the first section header's word, and number of all words.
const SECTIONS_AT: usize = FILE_HEADER + 2 * SEGMENT;
const HEAD: usize = SECTIONS_AT + SECTION * SECTIONS.len();
const HEAD_SIZE: usize = 8 * HEAD;
/// Index in a section header of its address, its file offset and its size.
const ADDRESS: usize = 2;
const PLACE: usize = 3;
const SIZE: usize = 4;

const EXECUTE: u64 = 1;
const WRITE: u64 = 2;
const READ: u64 = 4;

/// Number of pieces in a file, without those of the text.
const PIECES: usize = 18;

/// The parts of an object file. Those with several pieces are written one after another.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// First address, at a page boundary.
    pub(crate) address: u64,
    pub(crate) text: &'a Text,
    /// The symbols, including the null symbol at the beginning.
    pub(crate) symbols: &'a [u8],
    pub(crate) names: &'a [u8],
    pub(crate) unit: [&'a [u8]; 3],
    pub(crate) lines: [&'a [u8]; 7],
    pub(crate) frames: [&'a [u8]; 2],
}

/// Appends a `.symtab` symbol.
pub(crate) fn push_symbol(out: &mut Vec<u8>, name: u32, address: u64, size: u64) {
    // STB_GLOBAL, STT_FUNC, in .text. Tools take local symbols with certain names for markers.
    let kind = u64::from(name) | 0x12 << 32 | 1 << 48;
    out.extend_from_slice([kind, address, size].map(u64::to_le_bytes).as_flattened());
}

/// Size of a symbol, and the offsets of its address and its size.
pub(crate) const SYMBOL: usize = 24;
pub(crate) const SYMBOL_ADDRESS_AT: usize = 8;
pub(crate) const SYMBOL_SIZE_AT: usize = 16;

/// Composes the file, and passes its pieces and their size in all to `write`.
pub(crate) fn compose<R>(
    parts: &Parts<'_>,
    write: impl FnOnce((&mut [IoSlice<'_>], u64)) -> R,
) -> R {
    static ZEROS: [u8; PAGE as usize - HEAD_SIZE] = [0; PAGE as usize - HEAD_SIZE];
    let (symbols, names) = ([parts.symbols], [parts.names]);
    let bodies: [&[&[u8]]; SECTIONS.len() - TEXT - 1] = [
        &symbols,
        &names,
        &[units::ABBREVIATIONS],
        &parts.unit,
        &parts.lines,
        &parts.frames,
        &[&SECTION_NAMES],
    ];
    let mut head = TEMPLATE;
    let size = parts.text.len();
    put_section(&mut head, TEXT, (TEXT_AT, size));
    head[SECTIONS_AT + TEXT * SECTION + ADDRESS] = parts.address.to_le_bytes();
    put_segment(&mut head, 0, READ | EXECUTE, TEXT_AT, parts.address, (size, size));
    // Behind the text, where it does not interfere: it is not mapped there.
    let behind = parts.address.saturating_add(size);
    put_segment(&mut head, 1, READ | WRITE, 0, behind, (0, PAGE));
    let count = PIECES + 2 * (size / PAGE) as usize;
    let mut pieces = fallible::vec![IoSlice::new(&[]); count];
    // If there is no space for the pieces, the file is not used.
    let mut places = pieces.iter_mut();
    let mut add = |piece| {
        if let Some(place) = places.next() {
            *place = IoSlice::new(piece);
        }
    };
    let mut at = TEXT_AT + size;
    for (number, body) in (TEXT + 1..).zip(bodies) {
        let start = at;
        at += body.iter().map(|piece| piece.len() as u64).sum::<u64>();
        put_section(&mut head, number, (start, at - start));
    }
    add(head.as_flattened());
    add(&ZEROS);
    for [bytes, zeros] in parts.text.pages() {
        add(bytes);
        add(zeros);
    }
    bodies.iter().flat_map(|body| *body).for_each(|piece| add(piece));
    write((&mut pieces, at))
}

/// The offset and the size of a section in the file.
fn put_section(head: &mut [[u8; 8]; HEAD], number: usize, (at, size): (u64, u64)) {
    let section = SECTIONS_AT + number * SECTION;
    head[section + PLACE] = at.to_le_bytes();
    head[section + SIZE] = size.to_le_bytes();
}

/// `Elf64_Phdr` of a `PT_LOAD`, with its sizes in the file and in memory.
fn put_segment(
    head: &mut [[u8; 8]; HEAD],
    number: usize,
    flags: u64,
    at: u64,
    address: u64,
    sizes: (u64, u64),
) {
    let start = FILE_HEADER + number * SEGMENT;
    if let Some(segment) = head.get_mut(start..start + SEGMENT) {
        let words = [1 | flags << 32, at, address, address, sizes.0, sizes.1, PAGE];
        segment.copy_from_slice(&words.map(u64::to_le_bytes));
    }
}

/// Everything before the text, except for what differs between files.
static TEMPLATE: [[u8; 8]; HEAD] = {
    const ET_DYN: u64 = 3;
    let machine = jit_code::elf_machine::NATIVE as u64;
    let (segments, sections) = (2, SECTIONS.len() as u64);
    let mut head = [0; HEAD];
    head[0] = u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0"); // 64 bits, little-endian, version 1
    head[2] = ET_DYN | machine << 16 | 1 << 32;
    head[4] = 8 * FILE_HEADER as u64;
    head[5] = 8 * SECTIONS_AT as u64;
    head[6] = (8 * FILE_HEADER as u64) << 32 | (8 * SEGMENT as u64) << 48; // no flags
    head[7] = segments | (8 * SECTION as u64) << 16 | sections << 32 | (sections - 1) << 48;
    let (mut number, mut name_at) = (0, 0);
    while number < SECTIONS.len() {
        let (name, [kind, flags, link, align, entry]) = SECTIONS[number];
        let at = SECTIONS_AT + number * SECTION;
        (head[at], head[at + 1]) = (name_at | kind << 32, flags);
        (head[at + 5], head[at + 6], head[at + 7]) = (link, align, entry);
        name_at += name.len() as u64 + 1;
        number += 1;
    }
    let mut bytes = [[0; 8]; HEAD];
    let mut word = 0;
    while word < HEAD {
        bytes[word] = head[word].to_le_bytes();
        word += 1;
    }
    bytes
};

/// All names with their NULs.
static SECTION_NAMES: [u8; SECTION_NAMES_SIZE] = {
    let mut names = [0; SECTION_NAMES_SIZE];
    let (mut number, mut end) = (0, 0);
    while number < SECTIONS.len() {
        let name = SECTIONS[number].0.as_bytes();
        names.split_at_mut(end).1.split_at_mut(name.len()).0.copy_from_slice(name);
        end += name.len() + 1;
        number += 1;
    }
    names
};
const SECTION_NAMES_SIZE: usize = {
    let (mut number, mut size) = (0, 0);
    while number < SECTIONS.len() {
        size += SECTIONS[number].0.len() + 1;
        number += 1;
    }
    size
};
