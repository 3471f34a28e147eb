//! Samples by function, of one window and of all.

use std::collections::{BTreeMap, HashMap, VecDeque};

use profile::{Activities, FunctionKind, Profile, SharedLines, Tiers, Totals};

use super::window::{Window, Windows};
use crate::Result;
use crate::sort::Sort;

/// No more functions are kept from earlier windows.
const FUNCTIONS: usize = 1 << 16;
/// No more new codes are kept.
const COMPILED: usize = 64;

/// Which windows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The last one.
    Last,
    /// All.
    All,
}

/// A function, whatever process it ran in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// Its name.
    pub name: Vec<u8>,
    /// Its file; empty if it is not known.
    pub file: Vec<u8>,
    /// The line where it begins; 0 if it is not known.
    pub line: u32,
    /// The column where it begins; 0 if it is not known. Functions of minified scripts share a line.
    pub column: u32,
    /// What it is.
    pub kind: FunctionKind,
}

/// Samples of a function.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// In it.
    pub own: u64,
    /// In it and in what it called.
    pub total: u64,
    /// Those in it by the tier of the code.
    pub tiers: BTreeMap<Vec<u8>, u64>,
}

/// All samples of some windows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    /// Their number.
    pub all: u64,
    /// Those in jitted code.
    pub jitted: u64,
    /// What was done.
    pub activities: Activities,
}

/// Code that was compiled while a window was recorded.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The function's name.
    pub name: Vec<u8>,
    /// The tier; empty if it is not known.
    pub tier: Vec<u8>,
    /// The size of the code in bytes.
    pub size: u64,
}

/// The functions that were seen.
#[derive(Debug, Default)]
pub struct Table {
    /// Number of windows.
    pub windows: u64,
    /// What `record` said of the last one.
    pub messages: Vec<String>,
    /// New code, the latest first.
    pub compiled: VecDeque<Compiled>,
    /// The number of new codes in the last window.
    pub compiled_now: usize,
    samples: [Samples; 2],
    functions: HashMap<Function, [Counts; 2]>,
}

impl Counts {
    fn add(&mut self, own: u64, total: u64) {
        self.own = self.own.saturating_add(own);
        self.total = self.total.saturating_add(total);
    }
}

impl Table {
    /// Counts windows until there are no more, or `count` of them. After each, calls `show`.
    pub fn of_each(
        mut windows: Windows,
        count: Option<u64>,
        mut show: impl FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let mut table = Self::default();
        while count.is_none_or(|count| table.windows < count)
            && let Some(window) = windows.next()?
        {
            table.add(&window);
            show(&table)?;
        }
        Ok(())
    }

    /// Counts another window.
    pub fn add(&mut self, window: &Window) {
        let profile = &window.profile;
        self.windows += 1;
        self.messages.clone_from(&window.messages);
        self.forget_last();
        let totals = Totals::all(profile);
        let tiers = Tiers::of(profile, &totals);
        for (id, count) in totals.functions(profile) {
            let row = profile.function(id);
            let counts = self.functions.entry(Function::of(profile, id)).or_default();
            for counts in counts {
                counts.add(count.own, count.total);
                for &(tier, own) in tiers.of_function(id) {
                    *counts.tiers.entry(profile.text(tier).to_vec()).or_default() += own;
                }
            }
            if row.kind == FunctionKind::Jitted {
                self.samples.iter_mut().for_each(|samples| samples.jitted += count.own);
            }
        }
        let activities = Activities::of(profile, profile.samples().iter());
        for samples in &mut self.samples {
            samples.all += totals.samples();
            samples.activities.add(&activities);
        }
        self.add_compiled(profile);
    }

    /// The samples of these windows.
    pub fn samples(&self, span: Span) -> Samples {
        let [last, all] = self.samples;
        match span {
            Span::Last => last,
            Span::All => all,
        }
    }

    /// The functions with samples in these windows, in any order.
    pub fn sampled(&self, span: Span) -> impl Iterator<Item = (&Function, &Counts)> {
        self.functions
            .iter()
            .map(move |(function, [last, all])| {
                (function, if span == Span::Last { last } else { all })
            })
            .filter(|(_, counts)| counts.total > 0)
    }

    /// The functions with samples in these windows, in this order.
    pub fn functions(&self, span: Span, order: Sort) -> Vec<(&Function, &Counts)> {
        let mut rows: Vec<_> = self.sampled(span).collect();
        rows.sort_by(|(a, more), (b, less)| {
            let by_count = match order {
                Sort::Own => (less.own, less.total).cmp(&(more.own, more.total)),
                Sort::Total => (less.total, less.own).cmp(&(more.total, more.own)),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            by_count.then_with(|| a.cmp(b))
        });
        rows
    }

    /// Which of all functions share their lines with others of their name.
    pub fn shared_lines(&self) -> SharedLines<&[u8]> {
        let functions = self.functions.keys();
        SharedLines::of(functions.map(|row| (&*row.name, &*row.file, row.line, row.column)))
    }

    fn forget_last(&mut self) {
        let [last, _] = &mut self.samples;
        *last = Samples::default();
        for [last, _] in self.functions.values_mut() {
            *last = Counts::default();
        }
        if self.functions.len() > FUNCTIONS {
            // The rare ones: what is left of them would show no share.
            let mut counts: Vec<u64> = self.functions.values().map(|[_, all]| all.total).collect();
            counts.sort_unstable();
            let least = counts.get(counts.len() / 2).copied().unwrap_or_default();
            self.functions.retain(|_, [_, all]| all.total > least);
        }
    }

    fn add_compiled(&mut self, profile: &Profile) {
        let times = profile.samples().times();
        let Some((first, last)) = times.first().zip(times.last()) else {
            self.compiled_now = 0;
            return;
        };
        let is_new = |code: &&profile::Code| {
            code.process.is_some() && code.loaded.is_some_and(|at| (*first..=*last).contains(&at))
        };
        let mut new: Vec<_> = profile.codes().iter().filter(is_new).collect();
        new.sort_by_key(|code| code.loaded);
        self.compiled_now = new.len();
        for code in new {
            self.compiled.push_front(Compiled {
                name: profile.function_name(code.function).to_vec(),
                tier: profile.text(code.tier).to_vec(),
                size: code.size,
            });
        }
        self.compiled.truncate(COMPILED);
    }
}

impl Function {
    fn of(profile: &Profile, id: profile::FunctionId) -> Self {
        let row = profile.function(id);
        Self {
            name: profile.text(row.name).to_vec(),
            file: profile.text(row.file).to_vec(),
            line: row.line,
            column: row.column,
            kind: row.kind,
        }
    }
}
