//! LLVM's libunwind, which searches its list of registered FDEs from the beginning for each frame.
//!
//! Before it does, it asks the loader which object file an address belongs to (`dl_iterate_phdr`), and searches that file's
//! sorted table. So with many codes, the process gets one object file of ours without content (`object.rs`). Its program
//! headers say that it lies where jitted code is (`ranges.rs`), and refer to a table of our own (`table.rs`). A few codes are
//! registered one by one, as is code for which there is no program header.
#![allow(unsafe_code)]

mod object;
mod ranges;
mod table;

use std::time::{Duration, Instant};

use fallible::{Map, Refused, VecDeque};

use crate::entries::{Entry, Frames};
use crate::functions::Functions;
use crate::rows::{Row, Rows};
use crate::section::{Description, Single};
pub(crate) use object::Object;
use ranges::Ranges;
use table::Table;

/// With more codes than this, the object file is needed.
const FEW: usize = 256;
/// How long a table and the FDEs of codes are kept unchanged after their use: a walk may be reading them.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The registrations of one [`Unwinders`](crate::Unwinders).
#[derive(Debug, Default)]
pub(crate) struct Llvm {
    /// By address.
    codes: Map<u64, RegisteredCode>,
    shared: Option<Shared>,
    has_asked: bool,
    /// The FDEs of former codes, the oldest first.
    retired: VecDeque<(Instant, Description)>,
}

/// The object file, and what it refers to.
#[derive(Debug)]
struct Shared {
    object: Object,
    ranges: Ranges,
    table: Option<Table>,
    /// Number of codes in the table.
    rows: usize,
    /// Tables that are not in use any more, the oldest first.
    retired: VecDeque<(Instant, Table)>,
}

/// A code, and where its FDE is: at least in one of the two.
#[derive(Debug)]
struct RegisteredCode {
    end: u64,
    /// In libunwind's list.
    single: Option<Single>,
    /// In the table.
    row: Option<Description>,
}

impl RegisteredCode {
    fn frames(&self, start: u64) -> Option<Frames<'_>> {
        let description = self.row.as_ref().or(self.single.as_ref().map(Single::description));
        description.map(|description| description.frames(start, self.end))
    }
}

impl Llvm {
    /// Whether [`use_object`](Self::use_object) should be called. True once.
    pub(crate) fn wants_object(&mut self) -> bool {
        let wants = !self.has_asked && self.codes.len() >= FEW;
        self.has_asked |= wants;
        wants
    }

    /// Puts all codes into a table.
    pub(crate) fn use_object(&mut self, object: Object) -> Result<(), Refused> {
        let mut shared = Shared {
            object,
            ranges: Ranges::new()?,
            table: None,
            rows: 0,
            retired: VecDeque::new(),
        };
        for (&start, code) in self.codes.range_mut(..) {
            // It remains in the list, too: a walk may have looked at the object files before this one was there.
            if let Some(single) = &code.single
                && shared.ranges.add(&shared.object, start, code.end)?
            {
                code.row = Some(single.description().copy()?);
                shared.rows = shared.rows.saturating_add(1);
            }
        }
        self.shared = Some(shared);
        self.renew(0).map(drop)
    }

    pub(crate) fn add(&mut self, functions: Functions, entry: &Entry) -> Result<(), Refused> {
        let (start, end) = (entry.code.start, entry.code.end);
        // New FDEs replace those of earlier code at the same addresses.
        self.forget(start, end)?;
        if start >= end {
            return Ok(());
        }
        let Some(description) = Description::new(entry)? else { return Ok(()) };
        if let Some(shared) = &mut self.shared
            && shared.ranges.add(&shared.object, start, end)?
        {
            let row = row(start, &description);
            let before = self.codes.last_below(&start).map_or(0, |(_, code)| code.end);
            let behind = self.codes.first_from(&start).map_or(u64::MAX, |(&start, _)| start);
            let code = RegisteredCode { end, single: None, row: Some(description) };
            self.codes.try_insert(start, code).map_err(|(refused, _)| refused)?;
            shared.rows = shared.rows.saturating_add(1);
            let has_row =
                shared.table.as_ref().is_some_and(|table| table.add((row, end), &(before..behind)));
            if has_row || self.renew(start)? {
                return Ok(());
            }
            // The kernel has no memory for another table.
            self.forget(start, end)?;
            return Ok(());
        }
        let single = Some(Single::register(functions, description));
        // A code that cannot be stored is dropped, which deregisters it.
        let code = RegisteredCode { end, single, row: None };
        self.codes.try_insert(start, code).map(drop).map_err(|(refused, _)| refused)
    }

    /// Makes a new table, which has space for more codes from `next` on. False if there is no memory for it: then the old one
    /// remains.
    fn renew(&mut self, next: u64) -> Result<bool, Refused> {
        let Some(shared) = &mut self.shared else { return Ok(false) };
        let rows = self.codes.iter().filter_map(|(&start, code)| {
            code.row.as_ref().map(|description| (row(start, description), code.end))
        });
        let is_reusable =
            shared.retired.front().is_some_and(|(since, _)| since.elapsed() >= GRACE_PERIOD);
        let oldest = if is_reusable { shared.retired.pop_front() } else { None };
        let oldest = oldest.map(|(_, table)| table);
        let Some(new) = Table::new(oldest, shared.rows, next, rows)? else { return Ok(false) };
        shared.object.set_frames(new.header());
        if let Some(old) = shared.table.replace(new) {
            // A table that cannot be stored stays unchanged for ever, because walks may be in it.
            let _ = shared.retired.try_push_back((Instant::now(), old));
        }
        Ok(true)
    }

    /// All registered frames.
    pub(crate) fn all(&self) -> impl Iterator<Item = Frames<'_>> {
        self.codes.iter().filter_map(|(&start, code)| code.frames(start))
    }

    /// Removes all codes that overlap with this range.
    pub(crate) fn forget(&mut self, start: u64, end: u64) -> Result<(), Refused> {
        while let Some((&first, code)) = self.codes.last_below(&end)
            && code.end > start
        {
            let Some(code) = self.codes.remove(&first) else { return Ok(()) };
            let Some(description) = code.row else { continue };
            if let Some(shared) = &mut self.shared {
                if let Some(table) = &shared.table {
                    table.remove(first);
                }
                shared.rows = shared.rows.saturating_sub(1);
                let before = self.codes.last_below(&first).map(|(_, code)| code.end - 1);
                let behind = self.codes.first_from(&first).map(|(&start, _)| start);
                shared.ranges.remove(&shared.object, first, before, behind)?;
            }
            self.retire(description);
        }
        Ok(())
    }

    /// Keeps an FDE for some time: a walk that looked for an address between codes may have found its row.
    fn retire(&mut self, description: Description) {
        while self.retired.front().is_some_and(|(since, _)| since.elapsed() >= GRACE_PERIOD) {
            self.retired.pop_front();
        }
        if self.retired.try_reserve(1).is_ok() {
            self.retired.push_back((Instant::now(), description));
        } else {
            std::mem::forget(description);
        }
    }
}

impl Drop for Llvm {
    fn drop(&mut self) {
        // Before the FDEs to which it refers.
        if let Some(shared) = self.shared.take() {
            shared.object.give_back();
        }
    }
}

fn row(start: u64, description: &Description) -> Row {
    Row { start, fde: description.pointer().expose_provenance() as u64 }
}
