//! Assembles sections and segments into a file.

use std::io::{Seek, Write};

use fallible::Vec;

use super::headers::{self, Section, Segment};
use super::symbols::SymbolTable;
use super::written::{self, NOTE_OFFSET};
use crate::cfi::{UnwindSummary, UnwindTables};
use crate::dwarf::Sections;
use crate::encode::Encoder;
use crate::error::Error;
use crate::place::PAGE;
use crate::sparse::SparseWriter;
use crate::target::Target;

/// The file around the text. The text is written separately.
#[derive(Debug)]
pub(crate) struct Object<'a, W> {
    target: Target,
    out: &'a mut SparseWriter<W>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    /// File offset behind the last section.
    end: u64,
}

impl<'a, W: Write + Seek> Object<'a, W> {
    /// A file with only headers and the build-id note, written up to `end`.
    pub(crate) fn new(target: Target, out: &'a mut SparseWriter<W>, end: u64) -> Self {
        let note = Section {
            name: ".note.gnu.build-id",
            kind: headers::SHT_NOTE,
            flags: headers::SHF_ALLOC,
            address: NOTE_OFFSET,
            offset: NOTE_OFFSET,
            size: headers::BUILD_ID_NOTE,
            align: 4,
            ..Section::default()
        };
        let sections = fallible::vec![Section::default(), note];
        Object { target, out, segments: Vec::new(), sections, end }
    }

    /// Adds a program header. The headers are in the order of addition.
    pub(crate) fn segment(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Adds the program header for the beginning of the file, which becomes part of the process's memory.
    pub(crate) fn head_segment(&mut self, align: u64) {
        self.segment(written::head_segment(align));
    }

    /// Adds the program header of the build-id note.
    pub(crate) fn note_segment(&mut self) {
        self.segment(Segment {
            kind: headers::PT_NOTE,
            flags: headers::PF_R,
            address: NOTE_OFFSET,
            file_size: headers::BUILD_ID_NOTE,
            memory_size: headers::BUILD_ID_NOTE,
            align: 4,
        });
    }

    /// Adds a program header for `size` bytes at `address`, before that of the text.
    ///
    /// libdwfl takes the end of the last `PT_LOAD` for the end of the file, and rejects files that overlap. Between the text and
    /// these bytes may be other files of the process.
    pub(crate) fn segment_before_text(&mut self, address: u64, size: u64, align: u64) {
        let flags = headers::PF_R;
        let (file_size, memory_size) = (size, size);
        let segment =
            Segment { kind: headers::PT_LOAD, flags, address, file_size, memory_size, align };
        let text = self.segments.iter().position(|other| other.flags & headers::PF_X != 0);
        self.segments.insert(text.unwrap_or(self.segments.len()), segment);
    }

    /// Adds the text, which is the second section: `size` bytes, of which the segment has `in_file` in the file. Without
    /// `has_bytes`, these are a hole.
    pub(crate) fn text(&mut self, size: u64, in_file: u64, has_bytes: bool, align: u64) {
        self.segment(Segment {
            kind: headers::PT_LOAD,
            flags: headers::PF_R | headers::PF_X,
            address: PAGE,
            file_size: in_file,
            memory_size: size,
            align,
        });
        self.section(Section {
            name: ".text",
            kind: if has_bytes { headers::SHT_PROGBITS } else { headers::SHT_NOBITS },
            flags: headers::SHF_ALLOC | headers::SHF_EXECINSTR,
            address: PAGE,
            offset: PAGE,
            size,
            align: 16,
            ..Section::default()
        });
    }

    /// Writes `.eh_frame_hdr` at `address`, and `.eh_frame`.
    pub(crate) fn unwind_tables(
        &mut self,
        unwind: UnwindTables,
        address: u64,
    ) -> Result<UnwindSummary, Error> {
        let tables = unwind.emit(address);
        self.mapped(".eh_frame_hdr", address, &tables.header.bytes, 4, |usual| usual)?;
        let frames_address = address.saturating_add(tables.frames_offset);
        self.mapped(".eh_frame", frames_address, &tables.frames.bytes, 8, |usual| usual)?;
        self.segment(Segment {
            kind: headers::PT_GNU_EH_FRAME,
            flags: headers::PF_R,
            address,
            file_size: tables.header.len(),
            memory_size: tables.header.len(),
            align: 4,
        });
        Ok(tables.summary)
    }

    /// Writes the sections of debug info that are not empty.
    pub(crate) fn debug_info(&mut self, debug: Sections) -> Result<(), Error> {
        for (name, section, align) in [
            (".debug_abbrev", debug.abbrev, 1),
            (".debug_info", debug.info, 1),
            (".debug_aranges", debug.aranges, 16),
            (".debug_ranges", debug.ranges, 16),
            (".debug_line", debug.line, 1),
        ] {
            if section.len() > 0 {
                self.append(name, &section.bytes, align, |usual| usual)?;
            }
        }
        if debug.strings.len() > 0 {
            self.append(".debug_str", &debug.strings.bytes, 1, |usual| Section {
                flags: headers::SHF_MERGE | headers::SHF_STRINGS,
                entry_size: 1,
                ..usual
            })?;
        }
        Ok(())
    }

    /// Writes `.strtab` and `.symtab`.
    pub(crate) fn symbols(&mut self, symbols: &SymbolTable) -> Result<(), Error> {
        let strtab = self.append(".strtab", &symbols.strtab, 1, |usual| Section {
            kind: headers::SHT_STRTAB,
            ..usual
        })?;
        let target = self.target;
        self.append(".symtab", &symbols.symtab.bytes, 8, |usual| Section {
            kind: headers::SHT_SYMTAB,
            ..headers::symbol_section(usual, strtab, target)
        })?;
        Ok(())
    }

    /// Adds the header of a section whose bytes are already in the file; returns its index.
    pub(crate) fn section(&mut self, section: Section) -> u32 {
        self.sections.push(section);
        self.sections.len().saturating_sub(1) as u32
    }

    /// Writes the bytes of a section with a virtual address, which equals its file offset. Adds its header, which
    /// `complete` derives from the usual one; returns its index.
    pub(crate) fn mapped(
        &mut self,
        name: &'static str,
        address: u64,
        bytes: &[u8],
        align: u64,
        complete: impl FnOnce(Section) -> Section,
    ) -> Result<u32, Error> {
        self.end = address;
        let section = self.write(name, bytes, align)?;
        let usual = Section { flags: headers::SHF_ALLOC, address, ..section };
        Ok(self.section(complete(usual)))
    }

    /// The end of what was written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Continues at `offset` or behind it.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.end = self.end.max(offset);
    }

    /// Writes the bytes of a section that is not mapped, behind everything before. Adds its header, which `complete`
    /// derives from the usual one; returns its index.
    pub(crate) fn append(
        &mut self,
        name: &'static str,
        bytes: &[u8],
        align: u64,
        complete: impl FnOnce(Section) -> Section,
    ) -> Result<u32, Error> {
        let section = self.write(name, bytes, align)?;
        Ok(self.section(complete(section)))
    }

    fn write(&mut self, name: &'static str, bytes: &[u8], align: u64) -> Result<Section, Error> {
        let size = bytes.len() as u64;
        // offsets within debug info and string tables are 32-bit
        if size > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: name, size });
        }
        let offset = self.end.next_multiple_of(align);
        self.out.write_at(offset, bytes)?;
        self.end = offset.saturating_add(size);
        Ok(Section { name, kind: headers::SHT_PROGBITS, offset, size, align, ..Section::default() })
    }

    /// Writes the section header table, and assembles the beginning of the file. Returns this beginning with the
    /// build-id in it, the build-id, and the size of the file.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, [u8; 20], u64), Error> {
        let mut names = fallible::vec![0];
        let mut name_offsets = fallible::vec![0];
        let last = ".shstrtab";
        for name in self.sections.iter().skip(1).map(|section| section.name).chain([last]) {
            name_offsets.push(names.len() as u32);
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        self.append(last, &names, 1, |usual| Section { kind: headers::SHT_STRTAB, ..usual })?;

        let mut table = Encoder::new(self.target);
        for (section, &name) in self.sections.iter().zip(&name_offsets) {
            headers::section_header(&mut table, section, name);
        }
        let table_offset = self.write("section headers", &table.bytes, 8)?.offset;
        if !self.target.is_64 && self.end > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "file", size: self.end });
        }

        let mut head = Encoder::new(self.target);
        let section_count = self.sections.len() as u16;
        headers::file_header(&mut head, self.target, &self.segments, table_offset, section_count);
        head.bytes.resize(NOTE_OFFSET as usize, 0);

        let mut hasher = blake3::Hasher::new();
        hasher.update(self.out.hash()?.as_bytes());
        hasher.update(&head.bytes);
        let mut build_id = [0; 20];
        hasher.finalize_xof().fill(&mut build_id);
        headers::build_id_note(&mut head, &build_id);
        Ok((head.bytes, build_id, self.end))
    }
}
