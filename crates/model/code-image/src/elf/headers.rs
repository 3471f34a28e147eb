//! ELF structures: file header, program headers, section headers, the build-id note.

use crate::encode::Encoder;
use crate::target::{Endian, Target};

pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_DYNAMIC: u32 = 2;
pub(crate) const PT_NOTE: u32 = 4;
pub(crate) const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PT_GNU_STACK: u32 = 0x6474_e551;

pub(crate) const PF_X: u32 = 1;
pub(crate) const PF_W: u32 = 2;
pub(crate) const PF_R: u32 = 4;

pub(crate) const SHT_PROGBITS: u32 = 1;
pub(crate) const SHT_SYMTAB: u32 = 2;
pub(crate) const SHT_STRTAB: u32 = 3;
pub(crate) const SHT_DYNAMIC: u32 = 6;
pub(crate) const SHT_NOTE: u32 = 7;
pub(crate) const SHT_NOBITS: u32 = 8;
pub(crate) const SHT_DYNSYM: u32 = 11;
pub(crate) const SHT_GNU_HASH: u32 = 0x6fff_fff6;

pub(crate) const SHF_WRITE: u64 = 1;
pub(crate) const SHF_ALLOC: u64 = 2;
pub(crate) const SHF_EXECINSTR: u64 = 4;
pub(crate) const SHF_MERGE: u64 = 0x10;
pub(crate) const SHF_STRINGS: u64 = 0x20;

/// A program header. `memory_size` differs from `file_size` only if there are no bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    /// File offset and virtual address, which are equal: the image mirrors the arena.
    pub(crate) address: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) align: u64,
}

/// Marks that no executable stack is needed: without it, a loader makes all stacks of the process executable.
pub(crate) const NO_EXECUTABLE_STACK: Segment = Segment {
    kind: PT_GNU_STACK,
    flags: PF_R | PF_W,
    address: 0,
    file_size: 0,
    memory_size: 0,
    align: 16,
};

/// A section header.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) align: u64,
    pub(crate) entry_size: u64,
}

/// Sizes of the file header, a program header and a section header.
fn header_sizes(target: Target) -> (u16, u16, u16) {
    if target.is_64 { (64, 56, 64) } else { (52, 32, 40) }
}

/// Size of the file header.
pub(crate) fn file_header_size(target: Target) -> usize {
    usize::from(header_sizes(target).0)
}

/// Size of a section header.
pub(crate) fn section_header_size(target: Target) -> usize {
    usize::from(header_sizes(target).2)
}

/// Size of an entry of the symbol table.
pub(crate) fn symbol_size(target: Target) -> u64 {
    if target.is_64 { 24 } else { 16 }
}

/// A symbol table section, whose names are in the section `strings`.
pub(crate) fn symbol_section(usual: Section, strings: u32, target: Target) -> Section {
    Section {
        link: strings,
        info: 1, // the first global symbol: all but the null symbol are
        entry_size: symbol_size(target),
        ..usual
    }
}

/// Writes the file header, followed by the program headers.
pub(crate) fn file_header(
    out: &mut Encoder,
    target: Target,
    segments: &[Segment],
    sections_offset: u64,
    section_count: u16,
) {
    let (header_size, segment_size, section_size) = header_sizes(target);
    out.raw(b"\x7fELF");
    out.u8(if target.is_64 { 2 } else { 1 });
    out.u8(match target.endian {
        Endian::Little => 1,
        Endian::Big => 2,
    });
    out.u8(1); // EV_CURRENT
    out.raw(&[0; 9]); // System V ABI, padding
    out.u16(3); // ET_DYN: the addresses are relative to a load bias
    out.u16(target.machine);
    out.u32(1); // EV_CURRENT
    out.word(0); // no entry point
    // program headers follow, if any
    out.word(if segments.is_empty() { 0 } else { u64::from(header_size) });
    out.word(sections_offset);
    out.u32(target.flags);
    out.u16(header_size);
    out.u16(segment_size);
    out.u16(segments.len() as u16);
    out.u16(section_size);
    out.u16(section_count);
    out.u16(section_count.saturating_sub(1)); // .shstrtab is the last
    for segment in segments {
        out.u32(segment.kind);
        if target.is_64 {
            out.u32(segment.flags);
        }
        out.word(segment.address); // file offset
        out.word(segment.address); // virtual address
        out.word(segment.address); // physical address
        out.word(segment.file_size);
        out.word(segment.memory_size);
        if !target.is_64 {
            out.u32(segment.flags);
        }
        out.word(segment.align);
    }
}

/// Writes one entry of the section header table; `name` is its offset in `.shstrtab`.
pub(crate) fn section_header(out: &mut Encoder, section: &Section, name: u32) {
    if target_is_usual(out) {
        let low = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            low(name, section.kind),
            section.flags,
            section.address,
            section.offset,
            section.size,
            low(section.link, section.info),
            section.align,
            section.entry_size,
        ];
        return out.raw(words.map(u64::to_le_bytes).as_flattened());
    }
    out.u32(name);
    out.u32(section.kind);
    out.word(section.flags);
    out.word(section.address);
    out.word(section.offset);
    out.word(section.size);
    out.u32(section.link);
    out.u32(section.info);
    out.word(section.align);
    out.word(section.entry_size);
}

/// Whether entries can be written as 64-bit words.
fn target_is_usual(out: &Encoder) -> bool {
    let Target { endian, is_64, .. } = out.target();
    is_64 && endian == Endian::Little
}

/// Size of the build-id note.
pub(crate) const BUILD_ID_NOTE: u64 = 36;

/// Writes the content of `.note.gnu.build-id`.
pub(crate) fn build_id_note(out: &mut Encoder, build_id: &[u8; 20]) {
    out.u32(4); // with its NUL
    out.u32(build_id.len() as u32);
    out.u32(3); // NT_GNU_BUILD_ID
    out.raw(b"GNU\0");
    out.raw(build_id);
}
