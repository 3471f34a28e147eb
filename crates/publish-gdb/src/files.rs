//! The files in the list, and which codes they show.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use code_image::{Symfile, TAG};

use crate::budget::Budget;
use crate::descriptor::Entry;

/// So many files of one level are joined to one of the next.
const FAN: usize = 32;
/// A file of so many codes or more is joined to no other.
const LARGE: usize = 1000;
/// Files of fewer than 32, and of fewer than 1,000 codes.
const LEVELS: usize = 2;
/// So many files of one level are joined even if the debugger was given enough to do: then it would have more with them.
const TOO_MANY: usize = 4 * FAN;

/// What is shown.
#[derive(Debug)]
pub(crate) struct Files {
    slots: Vec<Option<File>>,
    free: Vec<usize>,
    entries: Vec<Entry>,
    levels: [Vec<usize>; LEVELS],
    /// By address of the first byte: the codes that are shown or wait. No two overlap.
    codes: BTreeMap<u64, Live>,
    /// Files of one code each that are not in the list yet.
    waiting: VecDeque<Symfile>,
    /// Files of which codes were taken out since the debugger read them.
    stale: Vec<usize>,
    budget: Budget,
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
}

/// Whether anything waits for its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    /// For this long, or longer.
    Wait(Duration),
}

impl Files {
    pub(crate) fn new(is_unlimited: bool) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            entries: Vec::new(),
            levels: Default::default(),
            codes: BTreeMap::new(),
            waiting: VecDeque::new(),
            stale: Vec::new(),
            budget: Budget::new(is_unlimited),
        }
    }

    /// Shows the code of a file of one.
    pub(crate) fn load(&mut self, symfile: Symfile) {
        let Some(code) = symfile.codes().next() else { return };
        let end = code.start.saturating_add(code.size);
        // As a rule, it lies behind all others.
        if self.codes.last_key_value().is_some_and(|(_, last)| last.end > code.start) {
            if self.codes.get(&code.start).is_some_and(|live| live.key == code.key) {
                return; // told twice
            }
            self.make_room(code.start, end);
        }
        self.codes.insert(code.start, Live { end, key: code.key });
        self.waiting.push_back(symfile);
    }

    /// Takes out what lies between these addresses.
    fn make_room(&mut self, start: u64, end: u64) {
        while let Some((&first, live)) = self.codes.range(..end).next_back()
            && live.end > start
        {
            let key = live.key;
            self.unload(key, first);
        }
    }

    /// The code is gone. Nothing happens if it is not known, or if its address is another's by now.
    pub(crate) fn unload(&mut self, key: u64, start: u64) {
        if self.codes.get(&start).is_none_or(|live| live.key != key) {
            return;
        }
        self.codes.remove(&start);
        // What waits is as a rule little, and what dies young died last.
        let is_it = |file: &Symfile| {
            file.codes().next().is_some_and(|code| code.key == key && code.start == start)
        };
        if let Some(at) = self.waiting.iter().rposition(is_it) {
            self.waiting.remove(at);
            return;
        }
        for (slot, file) in self.slots.iter_mut().enumerate() {
            let Some(file) = file else { continue };
            if file.symfile.span().contains(&start) && file.symfile.take_out(start, key) {
                if !file.is_stale {
                    file.is_stale = true;
                    self.stale.push(slot);
                }
                return;
            }
        }
    }

    /// Has the debugger take note of all that it was not told yet, as far as it may be given work.
    pub(crate) fn settle(&mut self) -> Rest {
        while let Some(slot) = self.stale.last().copied()
            && self.budget.allows()
        {
            self.stale.pop();
            self.refresh(slot);
        }
        if !self.waiting.is_empty() && self.budget.allows() {
            // All of it, so that nothing waits longer than for its turn.
            while !self.waiting.is_empty() {
                let file = self.next_waiting();
                self.show(file);
            }
            self.join(false);
        }
        self.join(true);
        if self.stale.is_empty() && self.waiting.is_empty() {
            Rest::Nothing
        } else {
            Rest::Wait(self.budget.wait())
        }
    }

    /// As much of what waits as goes into one file.
    fn next_waiting(&mut self) -> Option<Symfile> {
        if self.waiting.len() == 1 {
            return self.waiting.pop_front();
        }
        let files: Vec<Symfile> = self.waiting.drain(..LARGE.min(self.waiting.len())).collect();
        joined(files.iter())
    }

    /// A file that lost codes is read again, or leaves the list if it has none any more. It is made anew when half of it
    /// is of codes that are gone.
    fn refresh(&mut self, slot: usize) {
        let Some(Some(file)) = self.slots.get_mut(slot) else { return };
        file.is_stale = false;
        let (live, all) = (file.symfile.live(), file.symfile.codes().len());
        if live == 0 {
            self.hide(slot);
        } else if live < all / 2 {
            let smaller = joined([&file.symfile]);
            self.hide(slot);
            self.show(smaller);
        } else {
            let began = Instant::now();
            file.entry.unregister();
            file.entry.register(file.symfile.bytes());
            self.budget.spend(began, Instant::now());
        }
    }

    fn show(&mut self, symfile: Option<Symfile>) {
        let Some(symfile) = symfile else { return };
        let entry = self.entries.pop().unwrap_or_else(Entry::new);
        let began = Instant::now();
        entry.register(symfile.bytes());
        self.budget.spend(began, Instant::now());
        let level = level(symfile.live());
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
                self.slots.len() - 1
            }
        };
        if let Some(level) = self.levels.get_mut(level) {
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

    /// Joins the files of each level of which there are enough. The new one is shown before the old ones are hidden: a
    /// breakpoint in their code always has a place.
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
                let new = joined(now.iter().filter_map(of));
                self.show(new);
                for slot in now {
                    self.hide(*slot);
                }
            }
        }
    }
}

/// The level of a file of so many codes; that of large ones is behind the last.
fn level(live: usize) -> usize {
    match live {
        LARGE.. => LEVELS,
        FAN.. => 1,
        _ => 0,
    }
}

/// One file of several. What takes more than a file can hold is not shown.
fn joined<'f>(files: impl IntoIterator<Item = &'f Symfile>) -> Option<Symfile> {
    let files: Vec<&Symfile> = files.into_iter().collect();
    Symfile::joined(&files).ok().flatten()
}

/// A tag that no other copy of this crate has in this process.
pub(crate) fn tag(of: usize) -> [u8; TAG] {
    let mut tag = [0; TAG];
    for (place, byte) in tag.iter_mut().zip(of.to_le_bytes()) {
        *place = byte;
    }
    tag
}
