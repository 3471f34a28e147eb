//! The image: what goes where.

use std::io::{Seek, Write};
use std::ops::Range;

use super::headers::{self, Section, Segment, Sizes};
use super::sparse::SparseWriter;
use super::symbols::SymbolTable;
use crate::code::Code;
use crate::dwarf::{self, DebugInfo};
use crate::encode::Encoder;
use crate::error::Error;
use crate::target::Target;

/// Mappings start on multiples of this, and the text at this file offset, behind the headers.
///
/// Machines with larger pages are no exception: a recording may hold mappings of any granularity.
const PAGE: u64 = 0x1000;
/// Index of `.text` in the section header table.
const TEXT_SECTION: u16 = 2;
/// Far beyond any address space, and far from overflow.
const LARGEST_ARENA: u64 = 1 << 60;
/// Unwind tables refer to the text by signed 32-bit distances.
const REACH: u64 = i32::MAX as u64;

/// A range of the file and the addresses at which the process has it, or is to be told to have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file of the byte at `address`. `address - file_offset` is the load bias, the
    /// same for all mappings of one image.
    pub file_offset: u64,
}

/// What was written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finished {
    /// Contents of the build-id note: a hash of the content.
    pub build_id: [u8; 20],
    /// Apparent size of the file in bytes, holes included.
    pub file_size: u64,
    /// The text: from the page that the arena starts in to the arena's end.
    pub text: Mapping,
    /// The unwind tables, in whole pages; `None` if no code brought any.
    pub eh_frame: Option<Mapping>,
    /// Number of symbols, one for each code shown.
    pub symbols: u64,
}

/// Writes one image; see the [crate] for its layout.
#[derive(Debug)]
pub struct ImageWriter<W> {
    out: SparseWriter<W>,
    target: Target,
    span: Range<u64>,
    symbols: SymbolTable,
    debug_info: Option<DebugInfo>,
    previous_end: u64,
    has_bytes: bool,
}

impl<W: Write + Seek> ImageWriter<W> {
    /// Begins the image of the arena `span` in `out`, which is empty: what is not written must read
    /// as zeros.
    ///
    /// # Errors
    /// [`Error::EmptySpan`]; [`Error::TooLarge`] if the arena exceeds the target's address size.
    pub fn new(out: W, target: Target, span: Range<u64>) -> Result<Self, Error> {
        if span.start >= span.end {
            return Err(Error::EmptySpan(span));
        }
        let image = ImageWriter {
            out: SparseWriter::new(out),
            target,
            symbols: SymbolTable::new(target),
            debug_info: Some(DebugInfo::new(target)),
            previous_end: span.start,
            span,
            has_bytes: false,
        };
        let end = image.text_end();
        if end > LARGEST_ARENA || !target.is_64 && end > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "arena", size: end });
        }
        Ok(image)
    }

    /// Whether to write source lines (the default). Without them the image is about a third smaller.
    #[must_use]
    pub fn debug_info(mut self, on: bool) -> Self {
        self.debug_info = on.then(|| DebugInfo::new(self.target));
        self
    }

    /// Adds a code. Codes come in ascending order of their `visible` parts, which do not overlap.
    ///
    /// In the symbol's name control characters are replaced by `\xNN`; an empty name becomes
    /// `<unnamed>`.
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Order`], [`Error::Io`]. After the first two nothing was added.
    pub fn add(&mut self, code: &Code<'_>) -> Result<(), Error> {
        let visible = code.visible.clone();
        if visible.start >= visible.end {
            return Ok(());
        }
        for within in [self.span.clone(), code.start..code.start.saturating_add(code.size)] {
            if visible.start < within.start || visible.end > within.end {
                return Err(Error::Outside { visible, within });
            }
        }
        if visible.start < self.previous_end {
            return Err(Error::Order { start: visible.start, previous_end: self.previous_end });
        }
        self.previous_end = visible.end;

        let address = virtual_address(&self.span, visible.start);
        let size = visible.end.saturating_sub(visible.start);
        let bytes = visible_bytes(code);
        self.has_bytes |= !bytes.is_empty();
        self.out.write_at(address, bytes)?;
        let value = address | u64::from(code.thumb);
        let name = self.symbols.function(value, size, code.name, TEXT_SECTION);

        if let Some(debug_info) = &mut self.debug_info {
            let rows = dwarf::rows(code, |address| virtual_address(&self.span, address));
            if rows.is_empty() {
                debug_info.skip();
            } else {
                debug_info.add(name, address, address.saturating_add(size), &rows);
            }
        }
        Ok(())
    }

    /// Writes everything else.
    ///
    /// `place_eh_frame` is called if any code brought unwind info. It gets the size of the tables in
    /// bytes, a multiple of the page size, and says at which address the process is to be told to
    /// have them: a multiple of the page size, above the text and within 2 GiB of its start, where
    /// nothing else is mapped. `None` puts them right behind the text.
    ///
    /// # Errors
    /// [`Error::Placement`], [`Error::TooLarge`], [`Error::Io`].
    pub fn finish(
        mut self,
        place_eh_frame: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Finished, Error> {
        let _ = (place_eh_frame, REACH);
        let target = self.target;
        let sizes = Sizes::of(target);
        let text_len = self.text_end().saturating_sub(PAGE);
        let text_file_len = if self.has_bytes { text_len } else { 0 };

        let mut segments = vec![
            Segment {
                kind: headers::PT_LOAD,
                flags: headers::PF_R,
                address: 0,
                file_size: 0,
                memory_size: 0,
                align: PAGE,
            },
            Segment {
                kind: headers::PT_LOAD,
                flags: headers::PF_R | headers::PF_X,
                address: PAGE,
                file_size: text_file_len,
                memory_size: text_len,
                align: PAGE,
            },
            Segment {
                kind: headers::PT_NOTE,
                flags: headers::PF_R,
                address: 0,
                file_size: headers::BUILD_ID_NOTE,
                memory_size: headers::BUILD_ID_NOTE,
                align: 4,
            },
            Segment {
                kind: headers::PT_GNU_STACK,
                flags: headers::PF_R | headers::PF_W,
                address: 0,
                file_size: 0,
                memory_size: 0,
                align: 16,
            },
        ];
        let note_offset =
            u64::from(sizes.header) + u64::from(sizes.segment) * segments.len() as u64;
        let head_len = note_offset + headers::BUILD_ID_NOTE;
        for segment in &mut segments {
            match (segment.kind, segment.address) {
                (headers::PT_LOAD, 0) => {
                    segment.file_size = head_len;
                    segment.memory_size = head_len;
                }
                (headers::PT_NOTE, _) => segment.address = note_offset,
                _ => {}
            }
        }

        let mut sections = vec![
            Section::default(),
            Section {
                name: ".note.gnu.build-id",
                kind: headers::SHT_NOTE,
                flags: headers::SHF_ALLOC,
                address: note_offset,
                offset: note_offset,
                size: headers::BUILD_ID_NOTE,
                align: 4,
                ..Section::default()
            },
            Section {
                name: ".text",
                kind: if self.has_bytes { headers::SHT_PROGBITS } else { headers::SHT_NOBITS },
                flags: headers::SHF_ALLOC | headers::SHF_EXECINSTR,
                address: PAGE,
                offset: PAGE,
                size: text_len,
                align: 16,
                ..Section::default()
            },
        ];

        let mut tail = Tail { out: &mut self.out, end: PAGE + text_file_len };
        if let Some(debug_info) = self.debug_info {
            let debug = debug_info.finish();
            for (name, bytes, align) in [
                (".debug_abbrev", &debug.abbrev, 1),
                (".debug_info", &debug.info, 1),
                (".debug_aranges", &debug.aranges, 16),
                (".debug_ranges", &debug.ranges, 16),
                (".debug_line", &debug.line, 1),
            ] {
                if bytes.len() > 0 {
                    sections.push(tail.section(name, &bytes.bytes, align)?);
                }
            }
        }
        let symtab_index = sections.len() as u32;
        sections.push(Section {
            kind: headers::SHT_SYMTAB,
            link: symtab_index + 1,
            info: 1, // the first global symbol: all but the null symbol are
            entry_size: sizes.symbol,
            ..tail.section(".symtab", &self.symbols.symtab.bytes, 8)?
        });
        sections.push(Section {
            kind: headers::SHT_STRTAB,
            ..tail.section(".strtab", &self.symbols.strtab, 1)?
        });
        let mut names = vec![0];
        let mut name_offsets = vec![0];
        for name in sections.iter().skip(1).map(|section| section.name).chain([".shstrtab"]) {
            name_offsets.push(names.len() as u32);
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        sections
            .push(Section { kind: headers::SHT_STRTAB, ..tail.section(".shstrtab", &names, 1)? });

        let mut table = Encoder::new(target);
        for (section, &name) in sections.iter().zip(&name_offsets) {
            headers::section_header(&mut table, section, name);
        }
        let table_offset = tail.section("section headers", &table.bytes, 8)?.offset;
        let file_size = tail.end;
        if !target.is_64 && file_size > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "file", size: file_size });
        }

        let mut head = Encoder::new(target);
        headers::file_header(&mut head, target, &segments, table_offset, sections.len() as u16);
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.out.hash().as_bytes());
        hasher.update(&head.bytes);
        let mut build_id = [0; 20];
        hasher.finalize_xof().fill(&mut build_id);
        headers::build_id_note(&mut head, &build_id);
        self.out.finish(&head.bytes)?;

        Ok(Finished {
            build_id,
            file_size,
            text: Mapping {
                address: page_floor(self.span.start),
                len: text_len,
                file_offset: PAGE,
            },
            eh_frame: None,
            symbols: self.symbols.count,
        })
    }

    /// The virtual address behind the text.
    fn text_end(&self) -> u64 {
        virtual_address(&self.span, self.span.end)
    }
}

/// The virtual address, and file offset, of an address in the process, which lies in the arena `span`
/// or above it.
fn virtual_address(span: &Range<u64>, address: u64) -> u64 {
    address.saturating_sub(page_floor(span.start)).saturating_add(PAGE)
}

/// The sections behind everything that is mapped.
struct Tail<'a, W> {
    out: &'a mut SparseWriter<W>,
    /// File offset behind the last of them.
    end: u64,
}

impl<W: Write + Seek> Tail<'_, W> {
    /// Appends a section's bytes; returns its header, as a `PROGBITS` section.
    fn section(&mut self, name: &'static str, bytes: &[u8], align: u64) -> Result<Section, Error> {
        let size = bytes.len() as u64;
        if size > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: name, size });
        }
        let offset = self.end.next_multiple_of(align);
        self.out.write_at(offset, bytes)?;
        self.end = offset + size;
        Ok(Section { name, kind: headers::SHT_PROGBITS, offset, size, align, ..Section::default() })
    }
}

/// The bytes of the part to show, as far as they are known.
fn visible_bytes<'a>(code: &Code<'a>) -> &'a [u8] {
    let from = usize::try_from(code.visible.start.saturating_sub(code.start)).unwrap_or(usize::MAX);
    let to = usize::try_from(code.visible.end.saturating_sub(code.start)).unwrap_or(usize::MAX);
    code.bytes.get(from..to.min(code.bytes.len())).unwrap_or_default()
}

/// The start of the page that holds `address`.
fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}
