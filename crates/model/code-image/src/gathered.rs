//! Collects the content of a file as it is added: the text, which is written at once, and the tables behind it.

use std::io::{Seek, Write};
use std::ops::Range;

use crate::cfi::UnwindTables;
use crate::code::VisibleCode;
use crate::dwarf::DebugInfo;
use crate::error::Error;
use crate::functions::Functions;
use crate::part::Part;
use crate::place::Place;
use crate::sparse::SparseWriter;
use crate::target::Target;

/// A file whose text is written, and whose tables are collected.
#[derive(Debug)]
pub(crate) struct Gathered<W> {
    pub(crate) out: SparseWriter<W>,
    pub(crate) target: Target,
    pub(crate) place: Place,
    pub(crate) debug_info: Option<DebugInfo>,
    pub(crate) unwind: UnwindTables,
    /// What was added but not written yet.
    added: Part,
    previous_end: u64,
    pub(crate) has_bytes: bool,
}

impl<W: Write + Seek> Gathered<W> {
    /// Begins a file. `largest` is the largest valid address.
    ///
    /// # Errors
    /// [`Error::EmptySpan`]; [`Error::TooLarge`].
    pub(crate) fn new(out: W, target: Target, place: Place, largest: u64) -> Result<Self, Error> {
        let Range { start, end } = place.span;
        if start >= end {
            return Err(Error::EmptySpan(start..end));
        }
        let end = place.text_end();
        if end > largest || !target.is_64 && end > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "arena", size: end });
        }
        Ok(Self {
            out: SparseWriter::new(out),
            target,
            debug_info: Some(DebugInfo::new(target)),
            unwind: UnwindTables::new(target),
            added: Part::new(target, &place, true),
            previous_end: start,
            place,
            has_bytes: false,
        })
    }

    /// Sets whether there is debug info. Call this before anything is added.
    pub(crate) fn set_debug_info(&mut self, on: bool) {
        self.debug_info = on.then(|| DebugInfo::new(self.target));
        self.added = self.part();
    }

    /// An empty part of this file.
    pub(crate) fn part(&self) -> Part {
        Part::new(self.target, &self.place, self.debug_info.is_some())
    }

    /// Adds a code behind those that were added before. Returns whether it is time to [append](Self::append_added)
    /// them.
    pub(crate) fn add(&mut self, code: &VisibleCode<'_>) -> Result<bool, Error> {
        self.added.add(code)?;
        Ok(self.added.is_full())
    }

    /// Writes what was added, and passes its functions to `take`.
    pub(crate) fn append_added(&mut self, take: impl FnOnce(&mut Functions)) -> Result<(), Error> {
        let empty = self.part();
        let mut added = std::mem::replace(&mut self.added, empty);
        let done = self.append_part(&mut added, take);
        self.added = added;
        done
    }

    /// Writes a part, which must be behind everything that was added before. Passes its functions to `take`.
    pub(crate) fn append(
        &mut self,
        part: &mut Part,
        take: impl FnOnce(&mut Functions),
    ) -> Result<(), Error> {
        self.append_part(part, take)?;
        self.added.goes_on_behind(self.previous_end);
        Ok(())
    }

    fn append_part(
        &mut self,
        part: &mut Part,
        take: impl FnOnce(&mut Functions),
    ) -> Result<(), Error> {
        if *part.place() != self.place {
            let visible = part.place().span.clone();
            return Err(Error::Outside { visible, within: self.place.span.clone() });
        }
        let Some(Range { start, end }) = part.covers.clone() else { return Ok(()) };
        if start < self.previous_end {
            return Err(Error::Order { start, previous_end: self.previous_end });
        }
        part.covers = None;
        self.previous_end = end;
        self.has_bytes |= !part.text.is_empty();
        for (address, bytes) in part.texts() {
            self.out.write_at(self.place.file_offset(address), bytes)?;
        }
        part.clear_text();
        take(&mut part.functions);
        if let Some((debug_info, unit)) = self.debug_info.as_mut().zip(part.unit.as_mut()) {
            debug_info.append(unit);
        }
        self.unwind.append(&mut part.unwind);
        Ok(())
    }
}
