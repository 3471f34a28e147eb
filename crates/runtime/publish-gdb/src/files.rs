//! The files in the list, and the codes in them.

use std::ops::Range;
use std::time::{Duration, Instant};

use code_image::{Error, LARGEST_GAP, Symfile, TAG};
use fallible::{Map, Vec};

use crate::breakpoint::has_breakpoint;
use crate::budget::Budget;
use crate::debugger;
use crate::descriptor::{self, Entry};
use crate::waiting::Waiting;

/// This many files of one level are joined into one of the next.
const FAN: usize = 32;
/// A file with this many codes or more is not joined.
const LARGE: usize = 1000;
/// Files with fewer than 32, and with fewer than 1,000 codes.
const LEVELS: usize = 2;
/// This many files of one level are joined even if the debugger's budget is exhausted: more files would cost it more.
const TOO_MANY: usize = 4 * FAN;

/// The state of what is shown.
#[derive(Debug)]
pub(crate) struct Files {
    slots: Vec<Option<File>>,
    free: Vec<usize>,
    entries: Vec<Entry>,
    levels: [Vec<usize>; LEVELS],
    /// The codes that are shown or waiting, by the address of their first byte. No two overlap.
    codes: Map<u64, Live>,
    /// Files of one code each that are not in the list yet.
    waiting: Waiting,
    /// The runtime's own files in the list, by the address of their code.
    given: Map<u64, Given>,
    /// Files to be made again: codes were removed since the debugger read them, or other code is now where a section of theirs
    /// has a gap.
    stale: Vec<usize>,
    /// Whether a debugger has placed a breakpoint in code that was unloaded, so that it must know at once: if the code is
    /// overwritten first, it takes the breakpoint to be there still, or restores a byte of the old code in the new one.
    frees_breakpoint: bool,
    budget: Budget,
}

/// A file that the runtime made of a code. It is shown at once, and as it is.
#[derive(Debug)]
struct Given {
    entry: Entry,
    bytes: Vec<u8>,
}

/// A file in the list.
#[derive(Debug)]
struct File {
    symfile: Symfile,
    entry: Entry,
    is_stale: bool,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    end: u64,
    key: u64,
    /// Its number among the waiting codes, if it still waits; [`GIVEN`] if its file is the runtime's.
    number: u64,
}

/// No number of a waiting code.
const GIVEN: u64 = u64::MAX;

/// Whether code waits until the debugger's budget allows a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    Nothing,
    /// At least this long.
    Wait(Duration),
}

impl Files {
    pub(crate) fn new(is_unlimited: bool) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            entries: Vec::new(),
            levels: Default::default(),
            codes: Map::new(),
            waiting: Waiting::default(),
            given: Map::new(),
            stale: Vec::new(),
            frees_breakpoint: false,
            budget: Budget::new(is_unlimited),
        }
    }

    /// Shows the code of a file with one code.
    pub(crate) fn load(&mut self, symfile: Symfile) {
        let Some(code) = symfile.codes().next() else { return };
        let end = code.start.saturating_add(code.size);
        if self.make_room(code.key, code.start, end) {
            let number = self.waiting.push(symfile);
            self.codes.insert(code.start, Live { end, key: code.key, number });
        }
    }

    /// Shows a file that the runtime made of the code from `start` to `end`.
    pub(crate) fn load_given(&mut self, key: u64, start: u64, end: u64, bytes: Vec<u8>) {
        if !self.make_room(key, start, end) {
            return;
        }
        // Allocate everything for the file before a debugger is informed.
        let Some(entry) = self.entries.pop().or_else(Entry::new) else { return fallible::refuse() };
        self.codes.insert(start, Live { end, key, number: GIVEN });
        self.given.insert(start, Given { entry, bytes });
        if let Some(given) = self.given.get(&start) {
            let began = Instant::now();
            given.entry.register(&given.bytes);
            self.budget.spend(began, Instant::now());
        }
    }

    /// Removes the runtime's own files from the list, before these are dropped.
    pub(crate) fn hide_given(&mut self) {
        while let Some((&start, _)) = self.given.last_key_value() {
            if let Some(given) = self.given.remove(&start) {
                given.entry.unregister();
            }
        }
    }

    /// Unloads what is between these addresses. `false` if it is the code with this key, which was reported twice.
    fn make_room(&mut self, key: u64, start: u64, end: u64) -> bool {
        // Usually its address is above all others.
        if self.codes.last_key_value().is_some_and(|(_, last)| last.end > start) {
            if self.codes.get(&start).is_some_and(|live| live.key == key) {
                return false;
            }
            self.unload_overlapping(start, end);
            self.mark_gap(start..end);
        }
        true
    }

    /// Marks the files whose sections cover these addresses, between two codes, as stale.
    fn mark_gap(&mut self, addresses: Range<u64>) {
        let before = self.codes.last_below(&addresses.start).map(|(_, live)| live.end);
        let behind = self.codes.first_from(&addresses.end).map(|(start, _)| *start);
        let gap = before.zip(behind).and_then(|(before, behind)| behind.checked_sub(before));
        if gap.is_none_or(|gap| gap > LARGEST_GAP) {
            return;
        }
        for (slot, file) in self.slots.iter_mut().enumerate() {
            if let Some(file) = file
                && !file.is_stale
                && file.symfile.covers(addresses.start)
            {
                file.is_stale = true;
                self.stale.push(slot);
            }
        }
    }

    /// Removes the codes between these addresses.
    fn unload_overlapping(&mut self, start: u64, end: u64) {
        while let Some((&first, live)) = self.codes.last_below(&end)
            && live.end > start
        {
            let key = live.key;
            self.unload(key, first);
        }
    }

    /// Unloads a code. Does nothing if it is not known, or if its address now belongs to another code.
    ///
    /// It is removed from its file in place, which a debugger that attaches later reads. One that is there has read the file, so that it
    /// must be made again; otherwise, this waits until most of it is dead.
    pub(crate) fn unload(&mut self, key: u64, start: u64) {
        let Some(live) = self.codes.get(&start).copied().filter(|live| live.key == key) else {
            return;
        };
        self.codes.remove(&start);
        if live.number == GIVEN {
            if let Some(mut given) = self.given.remove(&start) {
                let began = Instant::now();
                given.entry.unregister();
                // gdb looks at its breakpoints again only if a file is added.
                if has_breakpoint(start..live.end) {
                    clear_sections(&mut given.bytes);
                    given.entry.register(&given.bytes);
                    given.entry.unregister();
                }
                self.budget.spend(began, Instant::now());
                self.entries.push(given.entry);
            }
            return;
        }
        if self.waiting.take(live.number, key).is_some() {
            return;
        }
        for (slot, file) in self.slots.iter_mut().enumerate() {
            let Some(file) = file else { continue };
            if file.symfile.span().contains(&start) && file.symfile.take_out(start, key) {
                let is_watched = descriptor::is_watched();
                if is_watched && !self.frees_breakpoint && has_breakpoint(start..live.end) {
                    self.frees_breakpoint = true;
                }
                if !file.is_stale && (is_watched || file.symfile.is_mostly_removed()) {
                    file.is_stale = true;
                    self.stale.push(slot);
                }
                return;
            }
        }
    }

    /// Informs the debugger of everything that is pending, as far as the budget allows.
    pub(crate) fn flush(&mut self) -> Pending {
        let frees_breakpoint = std::mem::take(&mut self.frees_breakpoint);
        // Before new code is shown, no file may claim its place.
        while (frees_breakpoint || self.budget.allows())
            && let Some(slot) = self.stale.pop()
        {
            self.remake(slot, frees_breakpoint);
        }
        if self.stale.is_empty() && !self.waiting.is_empty() && self.budget.allows() {
            // All of it, so that nothing waits for more than one turn.
            while !self.waiting.is_empty() {
                let file = self.next_waiting();
                self.show(file);
            }
            self.join(false);
        }
        self.join(true);
        if self.is_pending() { Pending::Wait(self.budget.wait()) } else { Pending::Nothing }
    }

    /// Whether the debugger is yet to be informed of something.
    pub(crate) fn is_pending(&self) -> bool {
        !self.stale.is_empty() || !self.waiting.is_empty()
    }

    /// Joins as many waiting codes as fit into one file.
    fn next_waiting(&mut self) -> Option<Symfile> {
        let mut files = self.waiting.take_first(LARGE);
        if files.len() == 1 {
            return files.pop();
        }
        self.joined(files.iter())
    }

    /// Replaces a file by one of its live codes.
    ///
    /// gdb looks at its breakpoints again only if a file is added. If there are none left in this one, and `resets_breakpoints`
    /// is set, the file is added once more without its codes.
    fn remake(&mut self, slot: usize, resets_breakpoints: bool) {
        let Some(Some(file)) = self.slots.get_mut(slot) else { return };
        file.is_stale = false;
        let new = match file.symfile.live() {
            0 => None,
            _ => self
                .slots
                .get(slot)
                .and_then(Option::as_ref)
                .and_then(|file| self.joined([&file.symfile])),
        };
        if new.is_none() && resets_breakpoints {
            self.add_again(slot);
        }
        self.hide(slot);
        self.show(new);
    }

    fn add_again(&mut self, slot: usize) {
        if let Some(Some(file)) = self.slots.get_mut(slot) {
            let began = Instant::now();
            file.entry.unregister();
            file.entry.register(file.symfile.bytes());
            self.budget.spend(began, Instant::now());
        }
    }

    /// Joins several files into one. What does not fit into a file is not shown.
    fn joined<'f>(&self, files: impl IntoIterator<Item = &'f Symfile>) -> Option<Symfile> {
        let files: Vec<&Symfile> = files.into_iter().collect();
        let is_free = |gap: Range<u64>| {
            self.codes.last_below(&gap.end).is_none_or(|(_, live)| live.end <= gap.start)
        };
        match Symfile::joined(&files, &is_free) {
            Ok(file) => file,
            Err(Error::Memory(_)) => {
                fallible::refuse();
                None
            }
            Err(_) => None,
        }
    }

    fn show(&mut self, symfile: Option<Symfile>) {
        let Some(symfile) = symfile else { return };
        // Allocate everything for the file before a debugger is informed.
        let Some(entry) = self.entries.pop().or_else(Entry::new) else { return fallible::refuse() };
        let level_of = level(symfile.live());
        let has_room = self.slots.try_reserve(1).is_ok()
            && self.levels.get_mut(level_of).is_none_or(|level| level.try_reserve(1).is_ok());
        if !has_room {
            return fallible::refuse();
        }
        let began = Instant::now();
        entry.register(symfile.bytes());
        self.budget.spend(began, Instant::now());
        let file = Some(File { symfile, entry, is_stale: false });
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.slots.get_mut(slot) {
                    *place = file;
                }
                slot
            }
            None => {
                self.slots.push(file);
                self.slots.len().saturating_sub(1)
            }
        };
        if let Some(level) = self.levels.get_mut(level_of) {
            level.push(slot);
        }
    }

    fn hide(&mut self, slot: usize) {
        let Some(file) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        let began = Instant::now();
        file.entry.unregister();
        self.budget.spend(began, Instant::now());
        self.entries.push(file.entry);
        self.free.push(slot);
        for level in &mut self.levels {
            level.retain(|other| *other != slot);
        }
        if file.is_stale {
            self.stale.retain(|other| *other != slot);
        }
    }

    fn hide_all(&mut self, slots: &[usize]) {
        for slot in slots {
            self.hide(*slot);
        }
    }

    /// Joins the files of each level that has enough of them.
    ///
    /// gdb gets the new file before the old ones are removed, so that a breakpoint in their code always has a location. For lldb,
    /// the old ones must be removed first: `JITLoaderGDB` unloads their sections by address, and so those of the new file.
    fn join(&mut self, must: bool) {
        let enough = if must { TOO_MANY } else { FAN };
        for level in 0..LEVELS {
            while self.levels.get(level).is_some_and(|files| files.len() >= enough)
                && (must || self.budget.allows())
            {
                let Some(files) = self.levels.get_mut(level) else { return };
                let mut count = 0_usize;
                let slots: Vec<usize> = std::mem::take(files);
                let live = |slot: usize| {
                    self.slots
                        .get(slot)
                        .and_then(Option::as_ref)
                        .map_or(0, |file| file.symfile.live())
                };
                let taken = slots
                    .iter()
                    .take_while(|slot| {
                        let before = count;
                        count = count.saturating_add(live(**slot));
                        before < LARGE
                    })
                    .count();
                let (now, later) = slots.split_at(taken);
                if let Some(files) = self.levels.get_mut(level) {
                    files.extend_from_slice(later);
                }
                let of = |slot: &usize| self.slots.get(*slot)?.as_ref().map(|file| &file.symfile);
                let new = self.joined(now.iter().filter_map(of));
                if debugger::is_gdb() {
                    self.show(new);
                    self.hide_all(now);
                } else {
                    self.hide_all(now);
                    self.show(new);
                }
            }
        }
    }
}

/// Makes an ELF file one without sections and segments. Other files are left as they are.
fn clear_sections(file: &mut [u8]) {
    // The offsets and the numbers in the header, by its class: those of program headers, and those of section headers.
    let ranges: [Range<usize>; 2] = match file {
        [0x7f, b'E', b'L', b'F', 1, ..] => [28..36, 44..52],
        [0x7f, b'E', b'L', b'F', 2, ..] => [32..48, 56..64],
        _ => return,
    };
    for range in ranges {
        // What is between the numbers is the size of a header, which then has no meaning.
        if let Some(field) = file.get_mut(range) {
            field.fill(0);
        }
    }
}

/// The level of a file with this many codes; large files are above the last level.
fn level(live: usize) -> usize {
    match live {
        LARGE.. => LEVELS,
        FAN.. => 1,
        _ => 0,
    }
}

/// A tag that no other copy of this crate in this process has.
pub(crate) fn tag(of: usize) -> [u8; TAG] {
    let mut tag = [0; TAG];
    for (place, byte) in tag.iter_mut().zip(of.to_le_bytes()) {
        *place = byte;
    }
    tag
}
