//! The image, and its layout.

use std::io::{Seek, Write};
use std::ops::Range;

use fallible::Vec;

use super::headers;
use super::object::Object;
use super::symbols::SymbolTable;
use crate::cfi::UnwindSummary;
use crate::code::VisibleCode;
use crate::error::Error;
use crate::gathered::Gathered;
use crate::part::Part;
use crate::place::{PAGE, Place};
use crate::target::Target;

/// Index of `.text` in the section header table: behind the null section and the build-id.
const TEXT_SECTION: u16 = 2;
/// Far beyond any address space, and far from an overflow.
const LARGEST_ARENA: u64 = 1 << 60;
/// Maximum space that is reserved for a table in advance.
const MOST_ROOM: u64 = 1 << 26;
/// Unwind tables refer to the text by signed 32-bit distances. A table farther above the text cannot refer to any of
/// it.
const REACH: u64 = i32::MAX as u64;

/// A range of the file, and the addresses at which the process has it mapped, or at which a mapping should be
/// reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file of the byte at `address`. `address - file_offset` is the load bias, which is the same for
    /// all mappings of one image.
    pub file_offset: u64,
}

/// The properties of an image that was written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finished {
    /// Contents of the build-id note: a hash of the content.
    pub build_id: [u8; 20],
    /// Apparent size of the file in bytes, holes included.
    pub file_size: u64,
    /// The text: from the page that the arena starts in to the arena's end.
    pub text: Mapping,
    /// The unwind tables, in whole pages; `None` if no code had any.
    pub eh_frame: Option<Mapping>,
    /// Number of symbols, one for each code shown.
    pub symbols: u64,
    /// Counts of the codes' unwind info.
    pub unwind: UnwindSummary,
}

/// Writes one image; see the [crate] for its layout.
#[derive(Debug)]
pub struct ImageWriter<W> {
    gathered: Gathered<W>,
    symbols: SymbolTable,
    /// How many codes the caller expects to add; 0 once space was reserved for them.
    expected: usize,
    has_tables: bool,
}

impl<W: Write + Seek> ImageWriter<W> {
    /// Begins the image of the arena `span`. `out` must be empty: what is not written must read as zeros.
    ///
    /// # Errors
    /// [`Error::EmptySpan`]; [`Error::TooLarge`] if the arena exceeds the target's address size.
    pub fn new(out: W, target: Target, span: Range<u64>) -> Result<Self, Error> {
        // The image mirrors the arena.
        let place = Place { span, text: PAGE };
        let gathered = Gathered::new(out, target, place, LARGEST_ARENA)?;
        Ok(ImageWriter {
            gathered,
            symbols: SymbolTable::new(target),
            expected: 0,
            has_tables: false,
        })
    }

    /// Sets whether to write source lines and inlined calls (the default). Without them the image is about a third
    /// smaller.
    #[must_use]
    pub fn debug_info(mut self, on: bool) -> Self {
        self.gathered.set_debug_info(on);
        self
    }

    /// Writes unwind tables also if no code has unwind info; then they are empty.
    ///
    /// perf's libunwind takes the frame pointer of a code that the tables do not have, but ends the stack if the file has no tables
    /// (util/unwind-libunwind-local.c, `find_proc_info`: the error is not `UNW_ENOINFO`).
    pub fn always_write_unwind_tables(&mut self) {
        self.has_tables = true;
    }

    /// Sets the expected number of codes, so that tables need not grow step by step. A wrong number does no harm.
    pub fn expect(&mut self, codes: usize) {
        self.expected = codes;
    }

    /// Adds a code. Codes must be added in ascending order of their `visible` parts, which must not overlap.
    ///
    /// In the symbol's name, control characters are replaced by `\xNN`; an empty name becomes `<unnamed>`.
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Order`], [`Error::Io`]. After the first two, nothing was added.
    pub fn add(&mut self, code: &VisibleCode<'_>) -> Result<(), Error> {
        if self.gathered.add(code)? { self.append_added() } else { Ok(()) }
    }

    /// An empty part of this image.
    #[must_use]
    pub fn part(&self) -> Part {
        self.gathered.part()
    }

    /// Adds the codes in a part of this image, and empties it. They must be behind everything that was added before.
    ///
    /// # Errors
    /// [`Error::Outside`] if it is a part of another image, [`Error::Order`], [`Error::Io`]. After the first two,
    /// nothing was added.
    pub fn append(&mut self, part: &mut Part) -> Result<(), Error> {
        self.append_added()?;
        self.gathered.append(part, |functions| self.symbols.append(functions, TEXT_SECTION))?;
        self.make_room();
        Ok(())
    }

    /// Names an address outside of the image's code to which this code branches. Without, disassemblers show the nearest symbol with a meaningless
    /// offset.
    pub fn name_branch_target(&mut self, address: u64, name: &[u8]) {
        let place = &self.gathered.place;
        // It may be below the arena.
        let value = address.wrapping_sub(place.process_address(0));
        let value = if self.gathered.target.is_64 { value } else { value & u64::from(u32::MAX) };
        self.symbols.add_label(value, name);
    }

    fn append_added(&mut self) -> Result<(), Error> {
        self.gathered.append_added(|functions| self.symbols.append(functions, TEXT_SECTION))?;
        self.make_room();
        Ok(())
    }

    /// Reserves space for the expected codes, assuming that each needs as much as those added first.
    fn make_room(&mut self) {
        let expected = std::mem::take(&mut self.expected) as u64;
        let added = self.symbols.count;
        if expected <= added || added == 0 {
            return;
        }
        let reserve = |table: &mut Vec<u8>| {
            let all = (table.len() as u64).saturating_mul(expected).checked_div(added);
            // Reserve a little more, because they differ; and limit it, in case the first ones are very large.
            let room = all.map_or(0, |all| all.saturating_add(all / 8)).min(MOST_ROOM);
            // If this fails, the tables grow as needed.
            let _ = table.try_reserve(room as usize);
        };
        reserve(&mut self.symbols.symtab.bytes);
        reserve(&mut self.symbols.strtab);
        if let Some(debug_info) = &mut self.gathered.debug_info {
            debug_info.large_tables().into_iter().for_each(reserve);
        }
    }

    /// Writes everything else.
    ///
    /// `place_eh_frame` is called if any code has unwind info, or [`Self::always_write_unwind_tables`] was called. Its argument is the size of the tables in bytes, a
    /// multiple of the page size. It returns the address at which a mapping of the tables will be reported for the
    /// process: a multiple of the page size, above the text and within 2 GiB of all relevant code, where nothing else
    /// is mapped. `None` puts the tables directly behind the text.
    ///
    /// # Errors
    /// [`Error::Placement`], [`Error::TooLarge`], [`Error::Io`].
    pub fn finish(
        mut self,
        place_eh_frame: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Finished, Error> {
        self.append_added()?;
        let place = &self.gathered.place;
        let text_end = place.text_end();
        let text_len = text_end.saturating_sub(PAGE);
        let tables_address = if self.gathered.unwind.is_empty() && !self.has_tables {
            None
        } else {
            let size = self.gathered.unwind.size().next_multiple_of(PAGE);
            Some((self.place(size, place_eh_frame)?, size))
        };
        let Gathered { mut out, target, place, debug_info, unwind, has_bytes, .. } = self.gathered;
        let mut summary = unwind.summary();

        let mut object = Object::new(target, &mut out, text_end);
        object.head_segment(PAGE);
        // samply looks for the segment whose part of the file has what is mapped, also if no code has bytes.
        object.text(text_len, text_len, has_bytes, PAGE);
        object.note_segment();
        if let Some((address, size)) = tables_address {
            summary = object.unwind_tables(unwind, address)?;
            let used = object.end().saturating_sub(address);
            object.segment_before_text(address, used, PAGE);
            object.skip_to(address.saturating_add(size));
        }
        object.segment(headers::NO_EXECUTABLE_STACK);
        if let Some(debug_info) = debug_info {
            object.debug_info(debug_info.finish())?;
        }
        object.symbols(&self.symbols)?;
        let (head, build_id, file_size) = object.finish()?;
        out.finish(&head)?;

        let mapping = |address: u64, len| Mapping {
            address: place.process_address(address),
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
        let place = &self.gathered.place;
        let text_end = place.text_end();
        let Some(chosen) = choose(size) else {
            return Ok(text_end.next_multiple_of(PAGE));
        };
        let address = place.virtual_address(chosen);
        let fits = chosen.is_multiple_of(PAGE)
            && chosen >= place.span.end
            && address.saturating_add(size).saturating_sub(text_end) <= REACH
            && (self.gathered.target.is_64 || address.saturating_add(size) <= u64::from(u32::MAX));
        if fits {
            Ok(address)
        } else {
            Err(Error::Placement { address: chosen, text: place.span.clone() })
        }
    }
}
