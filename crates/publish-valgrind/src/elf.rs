//! The object file of a region: only what valgrind wants to see, in the order in which it lies.
//!
//! ```text
//! 0       file header, two program headers
//! 0x1000  .text: the region's pages
//!         .symtab .strtab .debug_abbrev .debug_info .debug_line .debug_frame .shstrtab
//!         section headers
//! ```
//!
//! The first program header is the text, readable and executable. The second one is writable and
//! has no bytes, but there must be exactly one of it, and exactly one writable mapping of the
//! file: its first page will do. All addresses are the true ones, so that whoever disassembles
//! the file finds what a profile names.

use std::io::IoSlice;

use crate::encode::Encode;
use crate::units;
use crate::window::PAGE;

/// Where the text stands.
pub(crate) const TEXT_AT: u64 = PAGE;
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
/// The file header with two program headers.
const HEAD: usize = HEADER + 2 * SEGMENT;
const SECTIONS: u64 = NAMES.len() as u64;
const NAMES: [&str; 9] = [
    "",
    ".text",
    ".symtab",
    ".strtab",
    ".debug_abbrev",
    ".debug_info",
    ".debug_line",
    ".debug_frame",
    ".shstrtab",
];

/// Bytes of all names with their zeros.
const NAMES_SIZE: usize = 84;

const EXECUTE: u64 = 1;
const WRITE: u64 = 2;
const READ: u64 = 4;

/// What an object file is made of. What consists of several pieces is written one after another.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// First address, that of a page.
    pub(crate) address: u64,
    /// Whole pages.
    pub(crate) text: &'a [u8],
    /// The symbols, with the one at the beginning that is none.
    pub(crate) symbols: &'a [u8],
    pub(crate) names: &'a [u8],
    pub(crate) unit: [&'a [u8]; 3],
    pub(crate) lines: [&'a [u8]; 3],
    pub(crate) frames: [&'a [u8]; 2],
}

/// A symbol, as `.symtab` has it.
pub(crate) fn push_symbol(out: &mut Vec<u8>, name: u32, address: u64, size: u64) {
    out.u32(name);
    // STB_GLOBAL, STT_FUNC; local symbols of some names are taken for marks.
    out.extend_from_slice(&[0x12, 0]);
    out.u16(1); // in .text
    out.u64(address);
    out.u64(size);
}

/// Size of a symbol, and where in it its address and its size stand.
pub(crate) const SYMBOL: usize = 24;
pub(crate) const SYMBOL_ADDRESS_AT: usize = 8;
pub(crate) const SYMBOL_SIZE_AT: usize = 16;

/// Composes the file, and hands its pieces to `write`.
pub(crate) fn compose<R>(parts: &Parts<'_>, write: impl FnOnce(&mut [IoSlice<'_>]) -> R) -> R {
    static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
    let mut section_names = [0; NAMES_SIZE];
    let mut name_at = [0; NAMES.len()];
    let mut end = 0;
    for (at, name) in name_at.iter_mut().zip(NAMES) {
        *at = end as u64;
        if let Some(room) = section_names.get_mut(end..end + name.len()) {
            room.copy_from_slice(name.as_bytes());
        }
        end += name.len() + 1;
    }
    let text = parts.text.len() as u64;
    let bodies: [&[&[u8]]; 7] = [
        &[parts.symbols],
        &[parts.names],
        &[units::ABBREVIATIONS],
        &parts.unit,
        &parts.lines,
        &parts.frames,
        &[&section_names],
    ];
    let mut head = [0; HEAD];
    let mut headers = [0; SECTION * NAMES.len()];
    let mut slices = Vec::with_capacity(18);
    slices.extend([IoSlice::new(&[]), IoSlice::new(&ZEROS[HEAD..]), IoSlice::new(parts.text)]);
    let (mut sections, _) = headers.as_chunks_mut::<8>();
    // The first section is none.
    put_words(&mut sections, &[0; 8]);
    let flags = 2 | 4; // allocated, executable
    put_words(
        &mut sections,
        &[name_at[1] | 1 << 32, flags, parts.address, TEXT_AT, text, 0, 16, 0],
    );
    let mut at = TEXT_AT + text;
    for (number, body) in (2..).zip(bodies) {
        let size: usize = body.iter().map(|piece| piece.len()).sum();
        slices.extend(body.iter().map(|piece| IoSlice::new(piece)));
        let size = size as u64;
        let (kind, link, align, entry) = match number {
            // The names are in the next section; no symbol is a local one but the first.
            2 => (2, 3 | 1 << 32, 8, SYMBOL as u64),
            3 | 8 => (3, 0, 1, 0),
            _ => (1, 0, 1, 0),
        };
        let name = name_at[number] | kind << 32;
        put_words(&mut sections, &[name, 0, 0, at, size, link, align, entry]);
        at += size;
    }
    slices.push(IoSlice::new(&headers));

    let (mut words, _) = head.as_chunks_mut::<8>();
    put_words(&mut words, &file_header(at));
    put_words(&mut words, &segment(READ | EXECUTE, TEXT_AT, parts.address, text, text));
    // Behind the text, and in no one's way: it is not mapped there.
    let behind = parts.address.saturating_add(text);
    put_words(&mut words, &segment(READ | WRITE, 0, behind, 0, PAGE));
    slices[0] = IoSlice::new(&head);
    write(&mut slices)
}

/// Writes numbers into the first places, and leaves the others.
fn put_words(room: &mut &mut [[u8; 8]], words: &[u64]) {
    let (first, rest) = std::mem::take(room).split_at_mut(words.len());
    for (place, word) in first.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    *room = rest;
}

/// `Elf64_Ehdr`.
fn file_header(sections_at: u64) -> [u64; 8] {
    const ET_DYN: u64 = 3;
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let segments = 2;
    [
        u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0"), // 64 bits, little-endian, version 1
        0,
        ET_DYN | machine << 16 | 1 << 32,
        0, // no entry
        HEADER as u64,
        sections_at,
        (HEADER as u64) << 32 | (SEGMENT as u64) << 48, // no flags
        segments | (SECTION as u64) << 16 | SECTIONS << 32 | (SECTIONS - 1) << 48,
    ]
}

/// `Elf64_Phdr` of a `PT_LOAD`.
fn segment(flags: u64, at: u64, address: u64, in_file: u64, in_memory: u64) -> [u64; 7] {
    [1 | flags << 32, at, address, address, in_file, in_memory, PAGE]
}
