//! A range of pages with code, which one object file describes.

use std::ops::Range;

use fallible::Vec;

use crate::elf::{self, Parts, SYMBOL, SYMBOL_ADDRESS_AT, SYMBOL_SIZE_AT};
use crate::encode::put;
use crate::files::Files;
use crate::frames::{self, Commons};
use crate::lines;
use crate::name;
use crate::object::ObjectFile;
use crate::sorted::Sorted;
use crate::text::Text;
use crate::units::{self, Codes};
use crate::window::{Anchor, PAGE};
use jit_code::Code;

/// Dead entries are removed when there are more of them than of those in use, and more than this.
const FEW: usize = 64;

/// A code in a region, with its parts of the sections.
#[derive(Clone, Debug)]
struct Entry {
    size: u64,
    /// As it was announced: less is shown if other code is inside of it.
    told: (u64, u64),
    /// Offset of the name, index of the symbol.
    name: u32,
    symbol: usize,
    lines: Range<usize>,
    frame: Range<usize>,
    inlined: Range<usize>,
    /// The highest number of a source file.
    file: u32,
    /// An address that has a line.
    line_at: Option<u64>,
    is_live: bool,
}

/// The region's codes, and the sections of its object file, to which new codes are appended.
#[derive(Debug, Default)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    codes: Sorted<Entry>,
    /// Number of disabled entries in the sections.
    dead: usize,
    text: Text,
    symbols: Vec<u8>,
    names: Vec<u8>,
    lines: Vec<u8>,
    commons: Commons,
    frames: Vec<u8>,
    inlined: Codes,
    file: u32,
    /// The object file of this region that Valgrind has read.
    pub(crate) shown: Option<ObjectFile>,
    /// An address for which Valgrind then had a line.
    witness: Option<u64>,
    pub(crate) anchor: Option<Anchor>,
    /// Whether code was replaced or unloaded: the memory may have been unmapped.
    is_doubtful: bool,
}

impl Region {
    pub(crate) fn new(start: u64, end: u64) -> Self {
        let mut region = Self { start, end, text: Text::new(start, end), ..Self::default() };
        // Space for the codes that a region usually has.
        region.symbols.reserve(16 * SYMBOL);
        region.names.reserve(512);
        region.lines.reserve(1024);
        region.frames.reserve(1024);
        region.symbols.extend_from_slice(&[0; SYMBOL]);
        region.names.push(0);
        region
    }

    /// Number of codes.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether any code is alive.
    pub(crate) fn has_life(&self) -> bool {
        self.codes.iter().any(|(_, entry)| entry.is_live)
    }

    /// Enlarges the region.
    pub(crate) fn extend(&mut self, start: u64, end: u64) {
        self.text.extend(start, end);
        self.start = self.start.min(start);
        self.end = self.end.max(end);
    }

    /// Adds a code that is entirely in the region.
    pub(crate) fn add(&mut self, code: &Code<'_>, bytes: &[u8], files: &mut Files) {
        let place = (code.address, code.size);
        self.cut(code.address, code.size);
        self.put_text(code.address, bytes);
        let name = self.names.len() as u32;
        let function = if code.function.is_empty() { code.name } else { code.function };
        name::push(&mut self.names, function);
        let lines_from = self.lines.len();
        let rows = lines::push(&mut self.lines, files, place, code.lines);
        let frame_from = self.frames.len();
        if let Some(unwind) = &code.unwind {
            frames::push(&mut self.frames, &mut self.commons, place, unwind);
        }
        let inlined_from = self.inlined.bytes.len();
        let file = rows.file.max(self.inlined.push(files, place, code.inlined));
        self.file = self.file.max(file);
        let entry = Entry {
            size: code.size,
            told: place,
            name,
            symbol: 0,
            lines: lines_from..self.lines.len(),
            frame: frame_from..self.frames.len(),
            inlined: inlined_from..self.inlined.bytes.len(),
            file,
            line_at: rows.first.map(|offset| code.address.saturating_add(offset.into())),
            is_live: true,
        };
        self.insert(code.address, entry);
        if self.dead > FEW && self.dead > self.codes.len() {
            *self = self.without(|_| true);
        }
    }

    /// Inserts an entry whose name, lines and frame are in the sections.
    fn insert(&mut self, address: u64, entry: Entry) {
        let symbol = self.symbols.len();
        elf::push_symbol(&mut self.symbols, entry.name, address, entry.size);
        self.codes.insert(address, Entry { symbol, ..entry });
    }

    /// Sets the bytes of the code.
    pub(crate) fn put_text(&mut self, address: u64, bytes: &[u8]) {
        self.text.put(address, bytes);
    }

    /// Frees a range of addresses. Code whose first byte is in the range is dead, as is code that ends in
    /// it. Code that encloses the range stays alive around it.
    pub(crate) fn cut(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        while let Some(&(start, ref entry)) = self.codes.last_below(end)
            && start.saturating_add(entry.size) > address
        {
            self.is_doubtful = true;
            let old_end = start.saturating_add(entry.size);
            if start >= address {
                self.remove(start);
            } else if old_end <= end {
                // The rest before the range still belongs to it, but is not worth a name.
                self.remove(start);
            } else {
                let tail = Entry {
                    size: old_end - end,
                    lines: 0..0,
                    frame: 0..0,
                    inlined: 0..0,
                    ..entry.clone()
                };
                self.resize(start, address - start);
                self.insert(end, tail);
            }
        }
    }

    fn resize(&mut self, address: u64, size: u64) {
        if let Some(entry) = self.codes.get_mut(address) {
            entry.size = size;
            put(&mut self.symbols, entry.symbol + SYMBOL_SIZE_AT, size.to_le_bytes());
        }
    }

    fn remove(&mut self, address: u64) -> Option<Entry> {
        let entry = self.codes.remove(address)?;
        if let Some(symbol) = self.symbols.get_mut(entry.symbol..entry.symbol + SYMBOL) {
            symbol.fill(0);
        }
        lines::tombstone(self.lines.get_mut(entry.lines.clone()).unwrap_or_default());
        frames::tombstone(self.frames.get_mut(entry.frame.clone()).unwrap_or_default());
        self.inlined.tombstone(entry.inlined.clone());
        self.dead += 1;
        Some(entry)
    }

    /// Marks the code with this address and size as dead. Its name stays until its addresses are reused.
    pub(crate) fn unload(&mut self, address: u64, size: u64) {
        for (_, entry) in self.codes.range_mut(address, address.saturating_add(size.max(1))) {
            if entry.told == (address, size) {
                entry.is_live = false;
                self.is_doubtful = true;
            }
        }
    }

    /// Removes a code, and returns it as a region of its own at another place. `None` if no such code was
    /// announced here.
    pub(crate) fn take_out(&mut self, address: u64, size: u64, to: u64) -> Option<Self> {
        let entry = self.codes.get(address)?;
        if entry.told != (address, size) || entry.size != size || !entry.is_live {
            return None;
        }
        let mut alone = Self::new(0, 0);
        alone.copy(self, address, entry);
        self.remove(address);
        self.is_doubtful = true;
        let mut entry = alone.codes.remove(address)?;
        lines::move_to(alone.lines.get_mut(entry.lines.clone()).unwrap_or_default(), to);
        frames::move_to(alone.frames.get_mut(entry.frame.clone()).unwrap_or_default(), to);
        alone.inlined.move_by(to.wrapping_sub(address));
        put(&mut alone.symbols, entry.symbol + SYMBOL_ADDRESS_AT, to.to_le_bytes());
        entry.line_at = entry.line_at.map(|at| at.wrapping_sub(address).wrapping_add(to));
        entry.told = (to, size);
        alone.codes.insert(to, entry);
        Some(alone)
    }

    /// Joins two regions: the larger one is kept, and takes over the other.
    pub(crate) fn joined_with(self, other: Self) -> Self {
        let (mut kept, mut other) =
            if other.len() >= self.len() { (other, self) } else { (self, other) };
        kept.extend(other.start, other.end);
        kept.text.absorb(&other.text);
        kept.take_codes(&other);
        if let Some(anchor) = other.anchor.take() {
            // What Valgrind read from it is about to be replaced.
            anchor.unmap();
        }
        kept
    }

    /// Takes over the codes of another region, without their text.
    pub(crate) fn take_codes(&mut self, other: &Self) {
        self.is_doubtful |= other.is_doubtful;
        for &(address, ref entry) in other.codes.iter() {
            self.cut(address, entry.size);
            self.copy(other, address, entry);
        }
    }

    fn copy(&mut self, from: &Self, address: u64, entry: &Entry) {
        let name = self.names.len() as u32;
        let text = from.names.get(entry.name as usize..).unwrap_or_default();
        let length = text.iter().position(|byte| *byte == 0).map_or(text.len(), |end| end + 1);
        self.names.extend_from_slice(&text[..length]);
        let lines_from = self.lines.len();
        self.lines.extend_from_slice(from.lines.get(entry.lines.clone()).unwrap_or_default());
        let frame_from = self.frames.len();
        let frame = from.frames.get(entry.frame.clone()).unwrap_or_default();
        frames::copy(&mut self.frames, &mut self.commons, &from.commons, frame);
        let inlined_from = self.inlined.bytes.len();
        self.inlined.copy(&from.inlined, entry.inlined.clone());
        self.file = self.file.max(entry.file);
        let lines = lines_from..self.lines.len();
        let frame = frame_from..self.frames.len();
        let inlined = inlined_from..self.inlined.bytes.len();
        self.insert(address, Entry { name, lines, frame, inlined, ..entry.clone() });
    }

    /// A copy with only the codes for which `keep` returns true, given their addresses and whether they are
    /// alive, and without disabled entries.
    fn without(&mut self, keep: impl Fn((u64, u64, bool)) -> bool) -> Self {
        let mut new = Self::new(self.start, self.start);
        new.end = self.end;
        new.text = std::mem::take(&mut self.text);
        for &(address, ref entry) in self.codes.iter() {
            if keep((address, address.saturating_add(entry.size), entry.is_live)) {
                new.copy(self, address, entry);
            }
        }
        new.shown = self.shown.take();
        new.anchor = self.anchor.take();
        (new.is_doubtful, new.witness) = (self.is_doubtful, self.witness);
        new
    }

    /// Removes dead codes.
    pub(crate) fn bury(&mut self) {
        *self = self.without(|(_, _, is_live)| is_live);
    }

    /// A part of its pages, as a region of its own.
    pub(crate) fn part(&mut self, start: u64, end: u64) -> Self {
        let mut part = self.without(|code| code.0 >= start && code.1 <= end);
        self.text = std::mem::take(&mut part.text);
        part.text = self.text.part(start, end);
        (part.start, part.end) = (start, end);
        self.shown = part.shown.take();
        self.anchor = part.anchor.take();
        part
    }

    /// From now on, the memory is known to be as it was.
    pub(crate) fn trust(&mut self) {
        self.is_doubtful = false;
    }

    /// Whether Valgrind may have forgotten the region, and the address to ask it about.
    pub(crate) fn doubt(&self) -> Option<Option<u64>> {
        (self.is_doubtful && self.shown.is_some()).then_some(self.witness)
    }

    /// An address that will have a line, preferably one behind the last code that belongs to no code.
    fn choose_witness(&self) -> (Option<u64>, Option<[u8; lines::MARK]>) {
        let Some(&(last, ref entry)) = self.codes.last() else { return (None, None) };
        let behind = last.saturating_add(entry.size);
        if behind >= self.end {
            return (self.codes.iter().find_map(|(_, entry)| entry.line_at), None);
        }
        (Some(behind), Some(lines::mark(behind)))
    }

    /// Passes the parts of the object file to `write`.
    pub(crate) fn parts<R>(&mut self, files: &Files, write: impl FnOnce(&Parts<'_>) -> R) -> R {
        let (witness, mark) = self.choose_witness();
        self.witness = witness;
        self.is_doubtful = false;
        let mark = mark.as_ref().map_or(&[][..], <[u8; lines::MARK]>::as_slice);
        let place = (self.start, self.end);
        let (directories, names) = files.up_to(self.file.max(1));
        let lists = directories.len() + names.len() + 2;
        let header = lines::header(lists, self.lines.len() + mark.len());
        write(&Parts {
            address: self.start,
            text: &self.text,
            symbols: &self.symbols,
            names: &self.names,
            unit: [&units::head(place, self.inlined.bytes.len()), &self.inlined.bytes, &[0]],
            lines: [&header, directories, &[0], names, &[0], &self.lines, mark],
            frames: [&self.commons.bytes, &self.frames],
        })
    }
}

/// The pages that a range touches.
pub(crate) fn pages(address: u64, size: u64) -> (u64, u64) {
    let floor = |address: u64| address & !(PAGE - 1);
    (floor(address), floor(address.saturating_add(size).saturating_add(PAGE - 1)))
}
