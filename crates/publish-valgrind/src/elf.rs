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
use crate::window::PAGE;

/// Where the text stands.
pub(crate) const TEXT_AT: u64 = PAGE;
const HEADER: u16 = 64;
const SEGMENT: u16 = 56;
const SECTION: u16 = 64;
const SECTIONS: u16 = NAMES.len() as u16;
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

const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const READ: u32 = 4;

/// One compile unit without children: a place for the line table. Valgrind takes names from
/// the symbols.
const ABBREVIATIONS: [u8; 12] = [
    1, 0x11, 0, // DW_TAG_compile_unit, no children
    0x10, 0x17, // DW_AT_stmt_list, DW_FORM_sec_offset
    0x03, 0x08, // DW_AT_name, DW_FORM_string
    0, 0, 0, // end of the attributes, end of the table
    0, 0,
];

const UNIT: [u8; 24] = [
    20, 0, 0, 0, // length of what follows
    4, 0, // version
    0, 0, 0, 0, // the abbreviations
    8, // size of an address
    1, 0, 0, 0, 0, // the unit, its line table
    b'j', b'i', b't', b't', b'e', b'd', 0, // its name
    0,
];

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
    let mut section_names = Vec::with_capacity(80);
    let mut name_at = [0; NAMES.len()];
    for (at, name) in name_at.iter_mut().zip(NAMES) {
        *at = section_names.len() as u32;
        section_names.extend_from_slice(name.as_bytes());
        section_names.push(0);
    }
    let text = parts.text.len() as u64;
    let bodies: [&[&[u8]]; 7] = [
        &[parts.symbols],
        &[parts.names],
        &[&ABBREVIATIONS],
        &[&UNIT],
        &parts.lines,
        &parts.frames,
        &[&section_names],
    ];
    let mut slices = vec![IoSlice::new(&[]), IoSlice::new(parts.text)];
    let mut headers = vec![0; SECTION.into()];
    section(&mut headers, (name_at[1], 1, 2 | 4), (parts.address, TEXT_AT, text), (0, 0, 16, 0));
    let mut at = TEXT_AT + text;
    for (number, body) in (2..).zip(bodies) {
        let size: usize = body.iter().map(|piece| piece.len()).sum();
        slices.extend(body.iter().map(|piece| IoSlice::new(piece)));
        let size = size as u64;
        let (kind, detail) = match number {
            // The names are in the next section; no symbol is a local one but the first.
            2 => (2, (3, 1, 8, SYMBOL as u64)),
            3 | 8 => (3, (0, 0, 1, 0)),
            _ => (1, (0, 0, 1, 0)),
        };
        section(&mut headers, (name_at[number], kind, 0), (0, at, size), detail);
        at += size;
    }
    slices.push(IoSlice::new(&headers));

    let mut head = Vec::with_capacity(PAGE as usize);
    file_header(&mut head, at);
    segment(&mut head, READ | EXECUTE, TEXT_AT, parts.address, text, text);
    // Behind the text, and in no one's way: it is not mapped there.
    segment(&mut head, READ | WRITE, 0, parts.address.saturating_add(text), 0, PAGE);
    head.resize(PAGE as usize, 0);
    slices[0] = IoSlice::new(&head);
    write(&mut slices)
}

fn file_header(out: &mut Vec<u8>, sections_at: u64) {
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    // 64 bits, little-endian, version 1.
    out.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out.u16(3); // ET_DYN
    out.u16(machine);
    out.u32(1);
    out.u64(0); // no entry
    out.u64(HEADER.into());
    out.u64(sections_at);
    out.u32(0);
    out.u16(HEADER);
    out.u16(SEGMENT);
    out.u16(2);
    out.u16(SECTION);
    out.u16(SECTIONS);
    out.u16(SECTIONS - 1);
}

fn segment(out: &mut Vec<u8>, flags: u32, at: u64, address: u64, in_file: u64, in_memory: u64) {
    out.u32(1); // PT_LOAD
    out.u32(flags);
    out.u64(at);
    out.u64(address);
    out.u64(address);
    out.u64(in_file);
    out.u64(in_memory);
    out.u64(PAGE);
}

fn section(
    out: &mut Vec<u8>,
    (name, kind, flags): (u32, u32, u64),
    (address, at, size): (u64, u64, u64),
    (link, info, align, entry): (u32, u32, u64, u64),
) {
    out.u32(name);
    out.u32(kind);
    out.u64(flags);
    out.u64(address);
    out.u64(at);
    out.u64(size);
    out.u32(link);
    out.u32(info);
    out.u64(align);
    out.u64(entry);
}
