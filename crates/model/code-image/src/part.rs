//! A part of an image, created separately.

use std::ops::Range;

use fallible::Vec;

use crate::cfi::UnwindTables;
use crate::code::VisibleCode;
use crate::dwarf::{self, Unit};
use crate::error::Error;
use crate::functions::Functions;
use crate::place::{Place, visible_bytes};
use crate::target::Target;

/// Consecutive codes of an image, ready to be [appended](crate::ImageWriter::append) to it.
///
/// Preparing them is most of the work and does not need the image: threads can create the parts of one image at the
/// same time. Each part has at most one unit of debug info. If each part is filled up, the image is the same as with
/// [`ImageWriter::add`](crate::ImageWriter::add).
#[derive(Debug, Clone)]
pub struct Part {
    /// The layout of the image.
    place: Place,
    /// From the first visible address to the last.
    pub(crate) covers: Option<Range<u64>>,
    /// No code may come below this.
    previous_end: u64,
    /// The machine code, consecutive pieces.
    pub(crate) text: Vec<u8>,
    /// The virtual address and the length of each piece.
    pieces: Vec<(u64, usize)>,
    pub(crate) functions: Functions,
    pub(crate) unit: Option<Unit>,
    pub(crate) unwind: UnwindTables,
}

impl Part {
    pub(crate) fn new(target: Target, place: &Place, debug_info: bool) -> Self {
        Part {
            previous_end: place.span.start,
            place: place.clone(),
            covers: None,
            text: Vec::new(),
            pieces: Vec::new(),
            functions: Functions::default(),
            unit: debug_info.then(|| Unit::new(target)),
            unwind: UnwindTables::new(target),
        }
    }

    /// Like [`ImageWriter::add`](crate::ImageWriter::add).
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Order`]; nothing was added then.
    pub fn add(&mut self, code: &VisibleCode<'_>) -> Result<(), Error> {
        let visible = code.visible.clone();
        if visible.start >= visible.end {
            return Ok(());
        }
        for within in [self.place.span.clone(), code.range()] {
            if visible.start < within.start || visible.end > within.end {
                return Err(Error::Outside { visible, within });
            }
        }
        if visible.start < self.previous_end {
            return Err(Error::Order { start: visible.start, previous_end: self.previous_end });
        }
        self.previous_end = visible.end;
        self.covers.get_or_insert(visible.clone()).end = visible.end;

        let place = |address| self.place.virtual_address(address);
        let address = place(visible.start);
        let size = visible.end.saturating_sub(visible.start);
        let bytes = visible_bytes(code);
        if !bytes.is_empty() {
            self.text.extend_from_slice(bytes);
            self.pieces.push((address, bytes.len()));
        }
        let name = self.functions.add(address | u64::from(code.is_thumb), size, code.code.name);
        if let Some(unit) = &mut self.unit {
            let rows = dwarf::rows(code, place);
            let calls = dwarf::calls(code, place);
            unit.add(name, address, address.saturating_add(size), &rows, &calls);
        }
        if let Some(eh_frame) = code.eh_frame() {
            self.unwind.add(code, eh_frame, place);
        }
        Ok(())
    }

    /// Whether the debug info has reached the intended size of one part. More can still be added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.functions.is_full() || self.unit.as_ref().is_some_and(Unit::is_full)
    }

    /// Records that no code may be added below `end`.
    pub(crate) fn goes_on_behind(&mut self, end: u64) {
        self.previous_end = self.previous_end.max(end);
    }

    /// The layout of the image that this is a part of.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The machine code, by virtual address.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.text.as_slice();
        self.pieces.iter().map(move |&(address, len)| {
            let (bytes, behind) = rest.split_at_checked(len).unwrap_or_default();
            rest = behind;
            (address, bytes)
        })
    }

    /// Discards the machine code.
    pub(crate) fn clear_text(&mut self) {
        self.text.clear();
        self.pieces.clear();
    }
}
