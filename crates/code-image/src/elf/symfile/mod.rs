//! Symbol files: what a debugger is shown of code in memory, by way of the GDB JIT interface.
//!
//! An ELF object without segments. Addresses are the process's own. Each code has a section `.text` without bytes, so
//! that codes of several files may lie between one another; a symbol; a compilation unit and a line table; and unwind info
//! with a common part. Nothing is shared among codes, so that files are joined by copying, and a code is taken out
//! where it stands. No section that takes part in the process's memory has the address 0, which would take gdb a time
//! cubic in their number.

mod assemble;
mod fragment;

use std::ops::Range;

use super::headers;
use crate::cfi;
use crate::code::Code;
use crate::dwarf::{self, EMPTY_UNIT, Single, UNIT_ROOT_AT};
use crate::error::Error;
use crate::printable::push_printable;
use crate::target::Target;

use self::assemble::assemble;
use self::fragment::Fragment;

/// A symbol file.
#[derive(Debug)]
pub struct Symfile {
    target: Target,
    tag: [u8; TAG],
    bytes: Vec<u8>,
    /// By address.
    codes: Vec<Shown>,
    /// How many of them are not taken out.
    live: usize,
    layout: Layout,
    /// Where in `.debug_info` the places of lists of ranges stand.
    lists: Vec<u32>,
}

/// Bytes of the tag that a symbol file bears.
pub const TAG: usize = 7;
/// Where in a symbol file the tag stands: in ELF's padding, which readers pass over.
pub const TAG_AT: usize = 9;

/// `STB_GLOBAL << 4 | STT_NOTYPE`.
const GLOBAL_NOTHING: u8 = 0x10;

/// A code in a symbol file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymfileCode {
    /// The number that it was given.
    pub key: u64,
    /// Address of its first byte.
    pub start: u64,
    /// Bytes of code.
    pub size: u64,
    /// Whether it is shown; if not, it was taken out.
    pub is_shown: bool,
}

/// A code, and where its parts end, which begin where those of the code before it end.
#[derive(Debug, Clone, Copy)]
struct Shown {
    code: SymfileCode,
    thumb: bool,
    ends: Ends,
}

/// Ends of the parts of a code in sections, and in the list of places of lists.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    name: u32,
    info: u32,
    line: u32,
    ranges: u32,
    frames: u32,
    lists: u32,
}

/// Where in the file the sections begin.
#[derive(Debug, Clone, Copy, Default)]
struct Layout {
    text_headers: usize,
    symbols: usize,
    names: usize,
    info: usize,
    line: usize,
    ranges: usize,
    frames: usize,
}

impl Symfile {
    /// The file of one code, of which all but `bytes` is taken; what is `visible` is all that it shows.
    ///
    /// The `key` is for the caller to know the code again, and the `tag`, the file.
    ///
    /// # Errors
    /// [`Error::Outside`] if there is nothing to show, or something outside of the code; [`Error::TooLarge`] if it takes
    /// more than 4 GiB.
    pub fn new(target: Target, tag: [u8; TAG], key: u64, code: &Code<'_>) -> Result<Self, Error> {
        let frames = match code.unwind {
            Some(eh_frame) => cfi::absolute(target, code, eh_frame.bytes).bytes,
            None => Vec::new(),
        };
        Self::with_frames(target, tag, key, code, &frames)
    }

    /// [`Self::new`] for a code whose unwind info is `frames`, and not `code.unwind`: the entries of an `.eh_frame`
    /// without a terminator, whose common parts they bring, whose addresses are whole ones, and whose sizes are
    /// multiples of an address's. They are taken as they are.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_frames(
        target: Target,
        tag: [u8; TAG],
        key: u64,
        code: &Code<'_>,
        frames: &[u8],
    ) -> Result<Self, Error> {
        let Range { start, end } = code.visible.clone();
        let within = code.start..code.start.saturating_add(code.size);
        if start >= end || start < within.start.max(1) || end > within.end {
            return Err(Error::Outside { visible: start..end, within });
        }
        let mut name = Vec::with_capacity(code.name.len().saturating_add(1));
        push_printable(if code.name.is_empty() { b"<unnamed>" } else { code.name }, &mut name);
        let rows = dwarf::rows(code, |address| address);
        let calls = dwarf::calls(code, |address| address);
        let debug = Single::new(target, &name, start, end, &rows, &calls);
        name.push(0);
        let size = end.saturating_sub(start);
        let fragment = Fragment {
            code: SymfileCode { key, start, size, is_shown: true },
            thumb: code.thumb,
            name: &name,
            info: &debug.info.bytes,
            line: &debug.line.bytes,
            ranges: &debug.ranges.bytes,
            frames,
            lists: &debug.lists,
            lists_from: 0,
            ranges_from: 0,
        };
        let file = assemble(target, tag, &[fragment]);
        debug.give_back();
        file
    }

    /// One file of what the others show; `None` if that is nothing.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it takes more than 4 GiB.
    pub fn joined(files: &[&Symfile]) -> Result<Option<Self>, Error> {
        let count = files.iter().map(|file| file.live).sum();
        let mut fragments = Vec::with_capacity(count);
        for file in files {
            fragments.extend(file.fragments().filter(|fragment| fragment.code.is_shown));
        }
        if !fragments.is_sorted_by_key(|fragment| fragment.code.start) {
            fragments.sort_by_key(|fragment| fragment.code.start);
        }
        match files.first() {
            Some(first) if !fragments.is_empty() => {
                assemble(first.target, first.tag, &fragments).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many codes it shows.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live
    }

    /// The codes, by address, those that were taken out among them.
    pub fn codes(&self) -> impl ExactSizeIterator<Item = SymfileCode> + '_ {
        self.codes.iter().map(|shown| shown.code)
    }

    /// Addresses from the first code to the end of the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let first = self.codes.first().map_or(0, |first| first.code.start);
        let last = self.codes.last().map(|last| last.code);
        first..last.map_or(0, |last| last.start.saturating_add(last.size))
    }

    /// Takes out the code that starts at `start` and has this key; whether there was one. The file is changed where it
    /// stands, and is a whole one after every step.
    pub fn take_out(&mut self, start: u64, key: u64) -> bool {
        let from = self.codes.partition_point(|shown| shown.code.start < start);
        let same = self.codes.iter().skip(from).take_while(|shown| shown.code.start == start);
        let Some(at) = same.clone().position(|shown| shown.code.key == key) else { return false };
        let at = from.saturating_add(at);
        let before = self.ends_before(at);
        let Some(shown) = self.codes.get_mut(at).filter(|shown| shown.code.is_shown) else {
            return false;
        };
        shown.code.is_shown = false;
        self.live = self.live.saturating_sub(1);
        let (ends, layout, target) = (shown.ends, self.layout, self.target);
        let symbol_size = headers::symbol_size(target) as usize;
        let symbol =
            layout.symbols.saturating_add(symbol_size.saturating_mul(at.saturating_add(1)));
        self.clear(symbol, symbol_size);
        // Local ones would have to stand before those that are global.
        let info = symbol.saturating_add(if target.is_64 { 4 } else { 12 });
        if let Some(info) = self.bytes.get_mut(info) {
            *info = GLOBAL_NOTHING;
        }
        if ends.info > before.info {
            let root =
                layout.info.saturating_add(before.info as usize).saturating_add(UNIT_ROOT_AT);
            if let Some(root) = self.bytes.get_mut(root) {
                *root = EMPTY_UNIT;
            }
        }
        let frames = self.bytes.get_mut(
            layout.frames.saturating_add(before.frames as usize)
                ..layout.frames.saturating_add(ends.frames as usize),
        );
        cfi::silence(target, frames.unwrap_or_default());
        let header_size = headers::section_header_size(target);
        let header = layout.text_headers.saturating_add(header_size.saturating_mul(at));
        self.clear(header, header_size);
        true
    }

    fn clear(&mut self, at: usize, size: usize) {
        if let Some(place) = self.bytes.get_mut(at..at.saturating_add(size)) {
            place.fill(0);
        }
    }

    fn ends_before(&self, at: usize) -> Ends {
        let before = at.checked_sub(1).and_then(|before| self.codes.get(before));
        before.map(|before| before.ends).unwrap_or_default()
    }
}
