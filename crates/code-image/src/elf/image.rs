//! The image: what goes where.

use std::io::{Seek, Write};
use std::ops::Range;

use super::headers::{self, Section, Segment};
use super::object::Object;
use super::part::Part;
use super::sparse::SparseWriter;
use super::symbols::SymbolTable;
use crate::cfi::{UnwindSummary, UnwindTables};
use crate::code::Code;
use crate::dwarf::DebugInfo;
use crate::error::Error;
use crate::target::Target;

/// Mappings start on multiples of this, and the text at this file offset, behind the headers.
///
/// Machines with larger pages are no exception: a recording may hold mappings of any granularity.
const PAGE: u64 = 0x1000;
/// Index of `.text` in the section header table: behind the null section and the build-id.
const TEXT_SECTION: u16 = 2;
/// Far beyond any address space, and far from overflow.
const LARGEST_ARENA: u64 = 1 << 60;
/// No table is given more room than this ahead.
const MOST_ROOM: u64 = 1 << 26;
/// Unwind tables refer to the text by signed 32-bit distances: one further above the text than this
/// reaches nothing.
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
    /// What became of the codes' unwind info.
    pub unwind: UnwindSummary,
}

/// Writes one image; see the [crate] for its layout.
#[derive(Debug)]
pub struct ImageWriter<W> {
    out: SparseWriter<W>,
    target: Target,
    span: Range<u64>,
    symbols: SymbolTable,
    debug_info: Option<DebugInfo>,
    unwind: UnwindTables,
    /// What was added and is not written yet.
    added: Part,
    previous_end: u64,
    has_bytes: bool,
    /// How many codes the caller expects to add, until room was made for them.
    expected: usize,
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
            unwind: UnwindTables::new(target),
            added: Part::new(target, span.clone(), true),
            previous_end: span.start,
            span,
            has_bytes: false,
            expected: 0,
        };
        let end = image.text_end();
        if end > LARGEST_ARENA || !target.is_64 && end > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "arena", size: end });
        }
        Ok(image)
    }

    /// Whether to write source lines and inlined calls (the default). Without them the image is about a third smaller.
    #[must_use]
    pub fn debug_info(mut self, on: bool) -> Self {
        self.debug_info = on.then(|| DebugInfo::new(self.target));
        self.added = Part::new(self.target, self.span.clone(), on);
        self
    }

    /// Says how many codes will be added, so that tables need not grow step by step. It is no harm
    /// if there are more or fewer.
    pub fn expect(&mut self, codes: usize) {
        self.expected = codes;
    }

    /// Adds a code. Codes come in ascending order of their `visible` parts, which do not overlap.
    ///
    /// In the symbol's name control characters are replaced by `\xNN`; an empty name becomes
    /// `<unnamed>`.
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Order`], [`Error::Io`]. After the first two nothing was added.
    pub fn add(&mut self, code: &Code<'_>) -> Result<(), Error> {
        self.added.add(code)?;
        if self.added.is_full() { self.append_added() } else { Ok(()) }
    }

    /// An empty part of this image.
    #[must_use]
    pub fn part(&self) -> Part {
        Part::new(self.target, self.span.clone(), self.debug_info.is_some())
    }

    /// Adds the codes in a part of this image, and empties it. They come behind all that was added
    /// before.
    ///
    /// # Errors
    /// [`Error::Outside`] if it is another image's part, [`Error::Order`], [`Error::Io`]. After the
    /// first two nothing was added.
    pub fn append(&mut self, part: &mut Part) -> Result<(), Error> {
        self.append_added()?;
        self.append_part(part)?;
        self.added.goes_on_behind(self.previous_end);
        Ok(())
    }

    fn append_added(&mut self) -> Result<(), Error> {
        let empty = self.part();
        let mut added = std::mem::replace(&mut self.added, empty);
        let done = self.append_part(&mut added);
        self.added = added;
        done
    }

    fn append_part(&mut self, part: &mut Part) -> Result<(), Error> {
        if part.span != self.span {
            return Err(Error::Outside { visible: part.span.clone(), within: self.span.clone() });
        }
        let Some(Range { start, end }) = part.covers.clone() else { return Ok(()) };
        if start < self.previous_end {
            return Err(Error::Order { start, previous_end: self.previous_end });
        }
        part.covers = None;
        self.previous_end = end;
        self.has_bytes |= !part.text.is_empty();
        for (address, bytes) in part.texts() {
            self.out.write_at(address, bytes)?;
        }
        part.clear_text();
        self.symbols.append(&mut part.functions, TEXT_SECTION);
        if let Some((debug_info, unit)) = self.debug_info.as_mut().zip(part.unit.as_mut()) {
            debug_info.append(unit);
        }
        self.unwind.append(&mut part.unwind);
        self.make_room();
        Ok(())
    }

    /// Makes room for what is expected, if it is as large for each code as what was added first.
    fn make_room(&mut self) {
        let expected = std::mem::take(&mut self.expected) as u64;
        let added = self.symbols.count;
        if expected <= added || added == 0 {
            return;
        }
        let reserve = |table: &mut Vec<u8>| {
            let all = (table.len() as u64).saturating_mul(expected).checked_div(added);
            // Some more, as they differ; and not too much, if the first ones are very large.
            let room = all.map_or(0, |all| all.saturating_add(all / 8)).min(MOST_ROOM);
            // Without it, the tables grow as they do.
            let _ = table.try_reserve(room as usize);
        };
        reserve(&mut self.symbols.symtab.bytes);
        reserve(&mut self.symbols.strtab);
        if let Some(debug_info) = &mut self.debug_info {
            debug_info.large_tables().into_iter().for_each(reserve);
        }
    }

    /// Writes everything else.
    ///
    /// `place_eh_frame` is called if any code brought unwind info. It gets the size of the tables in
    /// bytes, a multiple of the page size, and says at which address the process is to be told to
    /// have them: a multiple of the page size, above the text and within 2 GiB of all code that matters, where
    /// nothing else is mapped. `None` puts them right behind the text.
    ///
    /// # Errors
    /// [`Error::Placement`], [`Error::TooLarge`], [`Error::Io`].
    pub fn finish(
        mut self,
        place_eh_frame: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Finished, Error> {
        self.append_added()?;
        let text_end = self.text_end();
        let text_len = text_end.saturating_sub(PAGE);
        let text_file_len = if self.has_bytes { text_len } else { 0 };
        let tables_address = if self.unwind.is_empty() {
            None
        } else {
            let size = self.unwind.size().next_multiple_of(PAGE);
            Some((self.place(size, place_eh_frame)?, size))
        };
        let mut summary = self.unwind.summary();

        let text_file_end = PAGE.saturating_add(text_file_len);
        let mut object = Object::new(self.target, &mut self.out, text_file_end);
        object.head_segment(PAGE);
        object.segment(Segment {
            kind: headers::PT_LOAD,
            flags: headers::PF_R | headers::PF_X,
            address: PAGE,
            file_size: text_file_len,
            memory_size: text_len,
            align: PAGE,
        });
        object.note_segment();
        object.section(Section {
            name: ".text",
            kind: if self.has_bytes { headers::SHT_PROGBITS } else { headers::SHT_NOBITS },
            flags: headers::SHF_ALLOC | headers::SHF_EXECINSTR,
            address: PAGE,
            offset: PAGE,
            size: text_len,
            align: 16,
            ..Section::default()
        });

        if let Some((address, size)) = tables_address {
            let tables = self.unwind.emit(address);
            summary = tables.summary;
            object.mapped(".eh_frame_hdr", address, &tables.header.bytes, 4)?;
            let frames_address = address.saturating_add(tables.frames_offset);
            object.mapped(".eh_frame", frames_address, &tables.frames.bytes, 8)?;
            object.segment(Segment {
                kind: headers::PT_GNU_EH_FRAME,
                flags: headers::PF_R,
                address,
                file_size: tables.header.len(),
                memory_size: tables.header.len(),
                align: 4,
            });
            object.skip_to(address.saturating_add(size));
        }
        object.segment(Segment {
            kind: headers::PT_GNU_STACK,
            flags: headers::PF_R | headers::PF_W,
            address: 0,
            file_size: 0,
            memory_size: 0,
            align: 16,
        });

        if let Some(debug_info) = self.debug_info {
            let debug = debug_info.finish();
            for (name, section, align) in [
                (".debug_abbrev", debug.abbrev, 1),
                (".debug_info", debug.info, 1),
                (".debug_aranges", debug.aranges, 16),
                (".debug_ranges", debug.ranges, 16),
                (".debug_line", debug.line, 1),
            ] {
                if section.len() > 0 {
                    object.append(name, &section.bytes, align, |usual| usual)?;
                }
            }
            if debug.strings.len() > 0 {
                object.append(".debug_str", &debug.strings.bytes, 1, |usual| Section {
                    flags: headers::SHF_MERGE | headers::SHF_STRINGS,
                    entry_size: 1,
                    ..usual
                })?;
            }
        }
        let strtab = object.append(".strtab", &self.symbols.strtab, 1, |usual| Section {
            kind: headers::SHT_STRTAB,
            ..usual
        })?;
        object.append(".symtab", &self.symbols.symtab.bytes, 8, |usual| Section {
            kind: headers::SHT_SYMTAB,
            link: strtab,
            info: 1, // the first global symbol: all but the null symbol are
            entry_size: headers::symbol_size(self.target),
            ..usual
        })?;
        let (head, build_id, file_size) = object.finish()?;
        self.out.finish(&head)?;

        let mapping = |address: u64, len| Mapping {
            address: process_address(&self.span, address),
            len,
            file_offset: address,
        };
        Ok(Finished {
            build_id,
            file_size,
            text: mapping(PAGE, text_len),
            eh_frame: tables_address.map(|(address, size)| mapping(address, size)),
            symbols: self.symbols.count,
            unwind: summary,
        })
    }

    /// The virtual address for unwind tables of `size` bytes.
    fn place(&self, size: u64, choose: impl FnOnce(u64) -> Option<u64>) -> Result<u64, Error> {
        let text_end = self.text_end();
        let Some(chosen) = choose(size) else {
            return Ok(text_end.next_multiple_of(PAGE));
        };
        let address = virtual_address(&self.span, chosen);
        let fits = chosen.is_multiple_of(PAGE)
            && chosen >= self.span.end
            && address.saturating_add(size).saturating_sub(text_end) <= REACH
            && (self.target.is_64 || address.saturating_add(size) <= u64::from(u32::MAX));
        if fits {
            Ok(address)
        } else {
            Err(Error::Placement { address: chosen, text: self.span.clone() })
        }
    }

    /// The virtual address behind the text.
    fn text_end(&self) -> u64 {
        virtual_address(&self.span, self.span.end)
    }
}

/// The virtual address, and file offset, of an address in the process, which lies in the arena `span`
/// or above it.
pub(super) fn virtual_address(span: &Range<u64>, address: u64) -> u64 {
    address.saturating_sub(page_floor(span.start)).saturating_add(PAGE)
}

/// The inverse of [`virtual_address`].
fn process_address(span: &Range<u64>, address: u64) -> u64 {
    page_floor(span.start).wrapping_add(address.wrapping_sub(PAGE))
}

/// The bytes of the part to show, as far as they are known.
pub(super) fn visible_bytes<'a>(code: &Code<'a>) -> &'a [u8] {
    let from = usize::try_from(code.visible.start.saturating_sub(code.start)).unwrap_or(usize::MAX);
    let to = usize::try_from(code.visible.end.saturating_sub(code.start)).unwrap_or(usize::MAX);
    code.bytes.get(from..to.min(code.bytes.len())).unwrap_or_default()
}

/// The start of the page that holds `address`.
fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}
