//! Symbol files (symfiles): object files in memory that describe code to a debugger, through the GDB JIT interface.
//!
//! A symfile is an ELF object without segments. Addresses are those of the process. Each code has a symbol, a compilation unit
//! and a line table, and unwind info with a CIE; codes that lie next to one another have a section without bytes in common (see
//! [`runs`]). Otherwise codes share nothing, so that files are joined by copying, and a code is removed in place. No allocated
//! section has the address 0: with such sections, gdb would take time cubic in their number.

mod assemble;
mod fragment;
mod runs;

use std::ops::Range;

use fallible::Vec;

use super::headers;
use crate::cfi;
use crate::code::VisibleCode;
use crate::dwarf::{self, EMPTY_UNIT, Single, UNIT_ROOT_AT};
use crate::entry::push_name;
use crate::error::Error;
use crate::target::Target;

use self::assemble::assemble;
use self::fragment::Fragment;
pub use self::runs::LARGEST_GAP;

/// A symbol file.
#[derive(Debug)]
pub struct Symfile {
    target: Target,
    tag: [u8; TAG],
    bytes: Vec<u8>,
    /// Sorted by address.
    codes: Vec<SymfileEntry>,
    /// How many of them were not removed.
    live: usize,
    layout: Layout,
    /// Offsets in `.debug_info` of the references to range lists.
    lists: Vec<u32>,
}

/// Size of a symfile's tag.
pub const TAG: usize = 7;
/// Offset of the tag in a symfile: in ELF's padding, which readers ignore.
pub const TAG_AT: usize = 9;

/// `STB_GLOBAL << 4 | STT_NOTYPE`.
const GLOBAL_NOTHING: u8 = 0x10;

/// A code in a symbol file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymfileCode {
    /// The caller's number for it.
    pub key: u64,
    /// Address of its first byte.
    pub start: u64,
    /// Bytes of code.
    pub size: u64,
    /// Whether it is shown; if not, it was removed.
    pub is_shown: bool,
}

/// A code, and the ends of its parts, which begin at the ends of the previous code's parts.
#[derive(Debug, Clone, Copy)]
struct SymfileEntry {
    code: SymfileCode,
    thumb: bool,
    /// The number of its section among those of codes.
    run: u16,
    ends: Ends,
}

/// Ends of a code's parts in sections, and in the table of references to range lists.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    name: u32,
    info: u32,
    line: u32,
    ranges: u32,
    frames: u32,
    lists: u32,
}

/// The offsets of the sections in the file.
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
    /// Encodes the file for one code. Its bytes are not used; only its visible part is shown.
    ///
    /// The `key` identifies the code to the caller, and the `tag` identifies the file.
    ///
    /// # Errors
    /// [`Error::Outside`] if there is nothing to show, or something outside the code; [`Error::TooLarge`] if it
    /// exceeds 4 GiB; [`Error::Memory`].
    pub fn new(
        target: Target,
        tag: [u8; TAG],
        key: u64,
        code: &VisibleCode<'_>,
    ) -> Result<Self, Error> {
        fallible::attempt(|| {
            let frames = match code.eh_frame() {
                Some(eh_frame) => cfi::absolute(target, code, eh_frame).bytes,
                None => Vec::new(),
            };
            Self::made(target, tag, key, code, &frames)
        })?
    }

    /// Like [`Self::new`], for a code whose unwind info is `frames`, and not what `code` has: the entries of an
    /// `.eh_frame` without a terminator. They must include their CIEs and have absolute addresses, and their sizes
    /// must be multiples of the address size. They are copied unchanged.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn with_frames(
        target: Target,
        tag: [u8; TAG],
        key: u64,
        code: &VisibleCode<'_>,
        frames: &[u8],
    ) -> Result<Self, Error> {
        fallible::attempt(|| Self::made(target, tag, key, code, frames))?
    }

    /// Like [`Self::with_frames`], within an attempt.
    fn made(
        target: Target,
        tag: [u8; TAG],
        key: u64,
        code: &VisibleCode<'_>,
        frames: &[u8],
    ) -> Result<Self, Error> {
        let Range { start, end } = code.visible.clone();
        let within = code.range();
        if start >= end || start < within.start.max(1) || end > within.end {
            return Err(Error::Outside { visible: start..end, within });
        }
        let mut name = Vec::with_capacity(code.code.name.len().saturating_add(1));
        push_name(code.code.name, &mut name);
        let rows = dwarf::rows(code, |address| address);
        let calls = dwarf::calls(code, |address| address);
        let debug = Single::new(target, &name, start, end, &rows, &calls);
        name.push(0);
        let size = end.saturating_sub(start);
        let fragment = Fragment {
            code: SymfileCode { key, start, size, is_shown: true },
            thumb: code.is_thumb,
            name: &name,
            info: &debug.info.bytes,
            line: &debug.line.bytes,
            ranges: &debug.ranges.bytes,
            frames,
            lists: &debug.lists,
            lists_from: 0,
            ranges_from: 0,
        };
        let file = assemble(target, tag, &[fragment], &|_| false);
        debug.give_back();
        file
    }

    /// Joins what the files show into one file; `None` if they show nothing.
    ///
    /// `is_free` tells of addresses, at most [`LARGEST_GAP`] many, whether no other code is there: codes with nothing but
    /// padding between them have one section. If code is placed there later, the file must be made again.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it exceeds 4 GiB; [`Error::Memory`].
    pub fn joined(
        files: &[&Symfile],
        is_free: &dyn Fn(Range<u64>) -> bool,
    ) -> Result<Option<Self>, Error> {
        fallible::attempt(|| Self::joined_here(files, is_free))?
    }

    /// Like [`Self::joined`], within an attempt.
    fn joined_here(
        files: &[&Symfile],
        is_free: &dyn Fn(Range<u64>) -> bool,
    ) -> Result<Option<Self>, Error> {
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
                assemble(first.target, first.tag, &fragments, is_free).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The file's content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of codes that it shows.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live
    }

    /// Whether more of its codes were removed than are left.
    #[must_use]
    pub fn is_mostly_removed(&self) -> bool {
        self.codes.len().saturating_sub(self.live) > self.live
    }

    /// The codes, sorted by address, including those that were removed.
    pub fn codes(&self) -> impl ExactSizeIterator<Item = SymfileCode> + '_ {
        self.codes.iter().map(|shown| shown.code)
    }

    /// The addresses from the first code to the end of the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let first = self.codes.first().map_or(0, |first| first.code.start);
        let last = self.codes.last().map(|last| last.code);
        first..last.map_or(0, |last| last.start.saturating_add(last.size))
    }

    /// Whether a section of the file contains `address`, be it of a code or between two.
    #[must_use]
    pub fn covers(&self, address: u64) -> bool {
        let behind = self.codes.partition_point(|shown| shown.code.start <= address);
        let Some(at) = behind.checked_sub(1) else { return false };
        let Some(before) = self.codes.get(at) else { return false };
        if self.is_alone(at) {
            // Its section was removed with it.
            let code = before.code;
            return code.is_shown && address.saturating_sub(code.start) < code.size;
        }
        let next = self.codes.get(behind);
        address.saturating_sub(before.code.start) < before.code.size
            || next.is_some_and(|next| next.run == before.run)
    }

    /// Removes the code that starts at `start` and has this key. Returns whether there was one. The file is changed
    /// in place, and is valid after every step. A section that the code has in common with others stays as it is.
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
        let (ends, run) = (shown.ends, shown.run);
        let (layout, target) = (self.layout, self.target);
        let symbol_size = headers::symbol_size(target) as usize;
        let symbol =
            layout.symbols.saturating_add(symbol_size.saturating_mul(at.saturating_add(1)));
        self.clear(symbol, symbol_size);
        // A local symbol would have to precede the global ones.
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
        cfi::tombstone(target, frames.unwrap_or_default());
        if self.is_alone(at) {
            let header_size = headers::section_header_size(target);
            let nth = usize::from(run);
            let header = layout.text_headers.saturating_add(header_size.saturating_mul(nth));
            self.clear(header, header_size);
        }
        true
    }

    /// Whether the code of this number has a section of its own.
    fn is_alone(&self, at: usize) -> bool {
        let run = |at: Option<usize>| Some(self.codes.get(at?)?.run);
        let own = run(Some(at));
        run(at.checked_sub(1)) != own && run(at.checked_add(1)) != own
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
