//! The first page of the file, and `.dynamic`, which refer to all other parts.

use code_image::{DebugEntry, Endian, Target};

use fallible::Vec;

use crate::layout::{HASH, Layout, ROWS_HEADER, SYMBOL};

/// Marks the file as an arena: the physical address of its last segment, which no tool reads. (The padding of ELF's
/// identification must be zeros for glibc.)
const TAG: u64 = u64::from_le_bytes(*b"codearen");
/// `e_machine` of this process.
pub(crate) const MACHINE: u16 = jit_code::elf_machine::NATIVE;
/// The machine that this process runs on.
pub(crate) const TARGET: Target =
    Target { machine: MACHINE, endian: Endian::Little, is_64: true, flags: 0 };

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SEGMENTS: usize = 8;

const SECTIONS: [&str; 14] = [
    "",
    ".note.gnu.build-id",
    ".text",
    ".hash",
    ".symtab",
    ".strtab",
    ".eh_frame_hdr",
    ".eh_frame",
    ".dynamic",
    ".debug_abbrev",
    ".debug_info",
    ".debug_line",
    ".debug_ranges",
    ".shstrtab",
];
/// Index of `.text`, to which symbols refer.
pub(crate) const TEXT: u16 = 2;
const STRTAB: u64 = 5;

/// A section that grows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GrowingSection {
    Text = 2,
    Symbols = 4,
    Names = 5,
    Rows = 6,
    Frames = 7,
    Info = 10,
    Line = 11,
    Ranges = 12,
}

/// Offset of a section's size.
pub(crate) fn size_at(section: GrowingSection) -> usize {
    HEADER + SEGMENTS * SEGMENT + section as usize * SECTION + 32
}

/// Offset of a section's place.
pub(crate) fn place_at(section: GrowingSection) -> usize {
    size_at(section) - 8
}

/// The first page.
pub(crate) fn first_page(layout: &Layout, build_id: [u8; 20]) -> Vec<u8> {
    const READ: u64 = 4;
    const WRITE: u64 = 2;
    const EXECUTE: u64 = 1;
    let sections_at = HEADER + SEGMENTS * SEGMENT;
    let note_at = sections_at + SECTIONS.len() * SECTION;
    let note = note(build_id);
    let abbreviations = DebugEntry::abbreviations(TARGET);
    let abbreviations_at = note_at + note.len();
    let names_at = abbreviations_at + abbreviations.len();
    let mut names = Vec::new();
    let name_at = SECTIONS.map(|name| {
        let at = names.len() as u64;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        at
    });

    let mut page = Words(Vec::with_capacity(layout.page));
    page.word(u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0"));
    page.word(0);
    let shared_object = 3;
    page.word(shared_object | u64::from(MACHINE) << 16 | 1 << 32);
    page.word(0); // no entry
    page.word(HEADER as u64);
    page.word(sections_at as u64);
    page.word((HEADER as u64) << 32 | (SEGMENT as u64) << 48); // no flags
    let last = SECTIONS.len() as u64 - 1;
    page.word(SEGMENTS as u64 | (SECTION as u64) << 16 | (last + 1) << 32 | last << 48);

    let tables = layout.dynamic - layout.hash;
    let (load, note_kind, dynamic, rows, stack) = (1, 4, 2, 0x6474_e550, 0x6474_e551);
    let frame_header = layout.rows_header();
    for (kind, flags, at, size, align) in [
        (load, READ, 0, layout.page, layout.page),
        (load, READ | EXECUTE, layout.text.start, layout.text.len(), layout.page),
        (load, READ, layout.hash, tables, layout.page),
        (load, READ | WRITE, layout.dynamic, layout.page, layout.page),
        (dynamic, READ | WRITE, layout.dynamic, DYNAMIC, 8),
        (note_kind, READ, note_at, note.len(), 4),
        (rows, READ, frame_header, layout.frames.start - frame_header, 4),
        // Without it, all stacks of the process would become executable.
        (stack, READ | WRITE, 0, 0, 16),
    ] {
        page.word(kind | flags << 32);
        let physical = if kind == stack { TAG } else { at as u64 };
        for word in [at as u64, at as u64, physical, size as u64, size as u64, align as u64] {
            page.word(word);
        }
    }

    let (bits, symbols, strings, hash, linked, noted) = (1, 2, 3, 5, 6, 7);
    let (allocated, writable, executable) = (2, 1, 4);
    // Kind, flags, place, size, link, alignment, size of an entry. The first symbol is the null symbol, the others are global.
    let sections: [(u64, u64, usize, usize, u64, u64, u64); SECTIONS.len()] = [
        (0, 0, 0, 0, 0, 0, 0),
        (noted, allocated, note_at, note.len(), 0, 4, 0),
        (bits, allocated | executable, layout.text.start, 0, 0, 64, 0),
        (hash, allocated, layout.hash, HASH, 4, 8, 4),
        (symbols, allocated, layout.symbols.start, SYMBOL, STRTAB | 1 << 32, 8, SYMBOL as u64),
        (strings, allocated, layout.names.start, 1, 0, 1, 0),
        (bits, allocated, frame_header, ROWS_HEADER, 0, 4, 0),
        (bits, allocated, layout.frames.start, 4, 0, 8, 0),
        (linked, allocated | writable, layout.dynamic, DYNAMIC, STRTAB, 8, 16),
        (bits, 0, abbreviations_at, abbreviations.len(), 0, 1, 0),
        // Initially behind the end of the file: they get their places with their first bytes.
        (bits, 0, layout.page, 0, 0, 1, 0),
        (bits, 0, layout.page, 0, 0, 1, 0),
        (bits, 0, layout.page, 0, 0, 1, 0),
        (strings, 0, names_at, names.len(), 0, 1, 0),
    ];
    for ((kind, flags, at, size, link, align, entry), name) in sections.into_iter().zip(name_at) {
        let address = if flags == 0 { 0 } else { at as u64 };
        page.word(name | kind << 32);
        for word in [flags, address, at as u64, size as u64, link, align, entry] {
            page.word(word);
        }
    }
    page.bytes(&note);
    page.bytes(&abbreviations);
    page.bytes(&names);
    page.0
}

/// The size of the result of [`dynamic`].
const DYNAMIC: usize = 7 * 16;

/// `.dynamic`: the information for a loader. Nothing needs to be bound: symbols cannot be found by name here, but `dladdr`
/// finds them by address.
pub(crate) fn dynamic(layout: &Layout) -> Vec<u8> {
    let mut out = Words(Vec::with_capacity(DYNAMIC));
    for (tag, value) in [
        (4, layout.hash),
        (6, layout.symbols.start),
        (11, SYMBOL),
        (5, layout.names.start),
        (10, layout.names.len()),
        (30, 0), // DT_FLAGS
        (0, 0),
    ] {
        out.word(tag);
        out.word(value as u64);
    }
    out.0
}

/// The build-id note.
fn note(build_id: [u8; 20]) -> Vec<u8> {
    let mut out = Vec::with_capacity(36);
    for word in [4_u32, 20, 3] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(b"GNU\0");
    out.extend_from_slice(&build_id);
    out
}

/// Writes words in the file's byte order.
struct Words(Vec<u8>);

impl Words {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{DYNAMIC, GrowingSection, dynamic, first_page, size_at};
    use crate::layout::Layout;

    #[test]
    fn fits_in_a_page() {
        let layout = Layout::new(1 << 20, 4096);
        let page = first_page(&layout, [7; 20]);
        assert!(page.len() <= 4096, "{}", page.len());
        assert_eq!(dynamic(&layout).len(), DYNAMIC);
        // The place where publish-valgrind looks for it.
        assert_eq!(page[480..488], *b"codearen");
        // `.symtab` has one symbol, the null symbol.
        assert_eq!(page[size_at(GrowingSection::Symbols)], 24);
    }
}
