//! A stretch of pages with code, which one object file shows.

use std::ops::Range;

use crate::code::{Code, Inlined, Line};
use crate::elf::{self, Parts, SYMBOL, SYMBOL_ADDRESS_AT, SYMBOL_SIZE_AT};
use crate::encode::put;
use crate::files::Files;
use crate::frames::{self, Commons};
use crate::lines;
use crate::name;
use crate::object::ObjectFile;
use crate::sorted::Sorted;
use crate::units::{self, Codes};
use crate::window::{Anchor, PAGE};

/// Dead entries are thrown out when they are more than those in use, and more than these.
const FEW: usize = 64;

/// A code in a region: where each section has its share.
#[derive(Clone, Debug)]
struct Entry {
    size: u64,
    /// As it was told: what other code lies in has less to show.
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
    /// Entries in the sections that say nothing any more.
    dead: usize,
    text: Vec<u8>,
    symbols: Vec<u8>,
    names: Vec<u8>,
    lines: Vec<u8>,
    commons: Commons,
    frames: Vec<u8>,
    inlined: Codes,
    file: u32,
    /// The object file that valgrind was shown for this region.
    pub(crate) shown: Option<ObjectFile>,
    /// An address of which valgrind then knew a line.
    witness: Option<u64>,
    pub(crate) anchor: Option<Anchor>,
    /// Code was replaced or unloaded: the memory may have been given back.
    is_doubtful: bool,
}

impl Region {
    pub(crate) fn new(start: u64, end: u64) -> Self {
        let text = vec![0; usize::try_from(end - start).unwrap_or(0)];
        let symbols = vec![0; SYMBOL];
        Self { start, end, text, symbols, names: vec![0], ..Self::default() }
    }

    /// How many codes it has.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether any code lives.
    pub(crate) fn has_life(&self) -> bool {
        self.codes.iter().any(|(_, entry)| entry.is_live)
    }

    /// Makes it larger.
    pub(crate) fn extend(&mut self, start: u64, end: u64) {
        if start < self.start {
            let more = usize::try_from(self.start - start).unwrap_or(0);
            self.text.splice(..0, std::iter::repeat_n(0, more));
            self.start = start;
        }
        if end > self.end {
            let more = usize::try_from(end - self.end).unwrap_or(0);
            self.text.resize(self.text.len() + more, 0);
            self.end = end;
        }
    }

    /// Adds a code, all of which lies in the region.
    pub(crate) fn add<'l>(
        &mut self,
        code: &Code<'_>,
        bytes: &[u8],
        files: &mut Files,
        lines: impl Iterator<Item = Line<'l>>,
        inlined: &[Inlined<'_>],
    ) {
        let place = (code.address, code.size);
        self.cut(code.address, code.size);
        self.put_text(code.address, bytes);
        let name = self.names.len() as u32;
        name::push(&mut self.names, code.name);
        let lines_from = self.lines.len();
        let rows = lines::push(&mut self.lines, files, place, lines);
        let frame_from = self.frames.len();
        if let Some(unwind) = &code.unwind {
            frames::push(&mut self.frames, &mut self.commons, place, unwind);
        }
        let inlined_from = self.inlined.bytes.len();
        let file = rows.file.max(self.inlined.push(files, place, inlined));
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

    /// Puts an entry in whose name, lines and frame stand in the sections.
    fn insert(&mut self, address: u64, entry: Entry) {
        let symbol = self.symbols.len();
        elf::push_symbol(&mut self.symbols, entry.name, address, entry.size);
        self.codes.insert(address, Entry { symbol, ..entry });
    }

    /// Says what the code's bytes are.
    pub(crate) fn put_text(&mut self, address: u64, bytes: &[u8]) {
        let at = usize::try_from(address.saturating_sub(self.start)).unwrap_or(usize::MAX);
        if let Some(room) = self.text.get_mut(at..) {
            let size = bytes.len().min(room.len());
            room[..size].copy_from_slice(&bytes[..size]);
        }
    }

    /// Takes addresses away from whoever has them. Code whose first byte is among them is dead, as
    /// is code that ends among them. Code around them lives on around them.
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
                // What is left of it before is its own still, and not worth a name.
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
        lines::silence(self.lines.get_mut(entry.lines.clone()).unwrap_or_default());
        frames::silence(self.frames.get_mut(entry.frame.clone()).unwrap_or_default());
        self.inlined.silence(entry.inlined.clone());
        self.dead += 1;
        Some(entry)
    }

    /// The code that was loaded with this address and size is dead. Its name stays until its
    /// addresses are used again.
    pub(crate) fn unload(&mut self, address: u64, size: u64) {
        for (_, entry) in self.codes.range_mut(address, address.saturating_add(size.max(1))) {
            if entry.told == (address, size) {
                entry.is_live = false;
                self.is_doubtful = true;
            }
        }
    }

    /// Takes a code out, as a region of its own that is for another place: `None` if no such
    /// code is here as it was told.
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

    /// Takes over what another region has, to whose place this one was extended.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.put_text(other.start, &other.text);
        self.take_codes(other);
    }

    /// Takes over the codes of another region, but for their text.
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

    /// The same, with the codes alone that are chosen by their addresses and whether they live, and without
    /// what says nothing any more.
    fn without(&mut self, keep: impl Fn((u64, u64, bool)) -> bool) -> Self {
        let mut new = Self::new(self.start, self.end);
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

    /// Throws out what is dead.
    pub(crate) fn bury(&mut self) {
        *self = self.without(|(_, _, is_live)| is_live);
    }

    /// What lies in some of its pages, as a region of its own.
    pub(crate) fn part(&mut self, start: u64, end: u64) -> Self {
        let mut part = self.without(|code| code.0 >= start && code.1 <= end);
        let from = usize::try_from(start - part.start).unwrap_or(0);
        let to = usize::try_from(end - part.start).unwrap_or(0);
        self.text = std::mem::take(&mut part.text);
        part.text = self.text.get(from..to).unwrap_or_default().to_vec();
        (part.start, part.end) = (start, end);
        self.shown = part.shown.take();
        self.anchor = part.anchor.take();
        part
    }

    /// Whether what valgrind was shown may be gone, and of which address to ask it to find out.
    pub(crate) fn doubt(&self) -> Option<Option<u64>> {
        (self.is_doubtful && self.shown.is_some()).then_some(self.witness)
    }

    /// An address that will have a line. Best is one that belongs to no code, behind the last one.
    fn choose_witness(&self) -> (Option<u64>, Option<[u8; lines::MARK]>) {
        let Some(&(last, ref entry)) = self.codes.last() else { return (None, None) };
        let behind = last.saturating_add(entry.size);
        if behind >= self.end {
            return (self.codes.iter().find_map(|(_, entry)| entry.line_at), None);
        }
        (Some(behind), Some(lines::mark(behind)))
    }

    /// Hands what the object file consists of to `write`.
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
