//! How many call stacks of a recording reach the bottom: as perf unwinds them, and as we do.

use std::collections::BTreeMap;
use std::path::Path;

use jitscribe_inject::files::PlainFiles;
use jitscribe_inject::{Guess, Recording};
use object::Object;

use crate::chains::{Chain, Frame};
use crate::perf::Perf;
use crate::record::Recorded;

/// The functions where stacks begin, as perf names them: the program's start, and those of threads.
const BOTTOMS: [&str; 9] = [
    "_start",
    "_dl_start_user",
    "__clone",
    "clone",
    "__clone3",
    "clone3",
    "start_thread",
    // What an Erlang process returns to.
    "erts_beamasm:normal_exit/0",
    "erts_beamasm:normal_exit/0-CodeInfoPrologue",
];

/// The size of `_start`, at most. Stripped programs do not name it.
const START: u64 = 64;

/// The stacks of a recording.
#[derive(Debug)]
pub struct Stacks {
    recorded: Recorded,
    raw: Vec<Chain>,
    injected: Vec<Chain>,
    entries: BTreeMap<String, Option<u64>>,
}

/// A stack as we unwind it.
#[derive(Debug)]
struct Unwound {
    is_whole: bool,
    frames: Vec<u64>,
}

/// Numbers of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeStacks {
    /// All stacks of user code.
    pub stacks: usize,
    /// In perf, on the recording as perf wrote it.
    pub raw: usize,
    /// In perf, with images.
    pub injected: usize,
    /// As `record` counts them.
    pub counted: usize,
    /// As we unwind them where frame pointers are guessed in code without tables.
    pub guessed: usize,
    /// Those of which perf and we have the same frames.
    pub alike: usize,
}

impl Stacks {
    /// Of a recording with copies of stacks, whose raw form was kept.
    pub fn of(recorded: Recorded) -> Self {
        let raw = Perf::installed().chains(&recorded.raw().join("perf.data"));
        let (raw, injected) = (user_stacks(raw), user_stacks(recorded.chains()));
        assert!(injected.len() > 30, "only {} stacks", injected.len());
        Self { recorded, raw, injected, entries: BTreeMap::new() }
    }

    /// Counts the stacks, and prints them as a row of the table in `docs/viewers.md`.
    #[expect(clippy::print_stdout, reason = "the table of docs/viewers.md")]
    pub fn count(&mut self, what: &str) -> WholeStacks {
        let unwound = self.unwound(Guess::AsPerf);
        let guessed = self.unwound(Guess::FramePointer);
        let (raw, injected) = (self.raw.clone(), self.injected.clone());
        let mut whole = |chains: &[Chain]| {
            chains.iter().filter(|chain| self.is_bottom(chain.frames.last())).count()
        };
        let counts = WholeStacks {
            stacks: injected.len(),
            raw: whole(&raw),
            injected: whole(&injected),
            counted: unwound.values().filter(|stack| stack.is_whole).count(),
            guessed: guessed.values().filter(|stack| stack.is_whole).count(),
            alike: injected.iter().filter(|chain| is_alike(chain, &unwound)).count(),
        };
        let WholeStacks { stacks, raw, injected, counted, guessed, alike } = counts;
        println!("| {what} | {stacks} | {raw} | {injected} | {counted} | {guessed} | {alike} |");
        counts
    }

    /// Checks that `record` says what we count, and that perf and we agree.
    pub fn expect_agreement(&mut self, what: &str) -> WholeStacks {
        let counts = self.count(what);
        let WholeStacks { stacks, injected, counted, alike, .. } = counts;
        let Recorded { report, said, .. } = &self.recorded;
        let report = &report["stacks"];
        assert_eq!(report["recorded"], "copied", "{report}");
        assert_eq!(report["whole"], counted, "{report}");
        let line = format!("stacks: {counted} of {} (", report["stacks"]);
        assert!(said.contains(&line), "no {line}: {said}");
        // perf caches by address how it unwinds, also where code was replaced, and processes that were forked lose some of their files.
        let few = stacks / 50 + 2;
        assert!(counted.abs_diff(injected) <= few, "{counts:?} {report}");
        assert!(stacks - alike <= few, "{counts:?}");
        counts
    }

    /// The stacks, with images, whose innermost frame is in jitted code: how many, and how many of them are whole.
    pub fn from_jitted_code(&mut self) -> (usize, usize) {
        let is_jitted = |frame: &Frame| frame.dso.contains("it.data.jit/");
        let mut chains = self.injected.clone();
        chains.retain(|chain| chain.frames.first().is_some_and(is_jitted));
        (chains.len(), chains.iter().filter(|chain| self.is_bottom(chain.frames.last())).count())
    }

    /// The stacks as we unwind them, by thread and time.
    fn unwound(&self, guess: Guess) -> BTreeMap<(u32, u64), Unwound> {
        let mut found = BTreeMap::new();
        let data = self.recorded.data();
        let mut recording = Recording::open(&data, &|_| {}).expect("a recording");
        recording
            .each_stack(&PlainFiles, guess, &mut |stack| {
                let key = (stack.tid, stack.time);
                let (is_whole, frames) = (stack.end.is_none(), stack.frames.to_vec());
                found.insert(key, Unwound { is_whole, frames });
            })
            .expect("all of it");
        found
    }

    fn is_bottom(&mut self, last: Option<&Frame>) -> bool {
        let Some(last) = last else { return false };
        let is_named = last.name().is_some_and(|name| {
            let name = name.split('@').next().unwrap_or(name);
            BOTTOMS.contains(&name)
        });
        is_named || {
            let entry = self.entries.entry(last.dso.clone());
            let entry = *entry.or_insert_with(|| entry_of(Path::new(&last.dso)));
            entry.is_some_and(|entry| (entry..entry + START).contains(&last.address))
        }
    }
}

/// Where a program begins.
fn entry_of(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    object::File::parse(&*bytes).ok().map(|file| file.entry())
}

/// The parts of stacks in user code, if there are any.
fn user_stacks(mut chains: Vec<Chain>) -> Vec<Chain> {
    for chain in &mut chains {
        // perf shows a return address of 0 as the last one.
        chain.frames.retain(|frame| frame.address < 1 << 63 && !frame.dso.starts_with("[kernel"));
    }
    chains.retain(|chain| !chain.frames.is_empty());
    chains
}

/// Whether perf and we have the same frames: perf prints addresses in files, which lie in memory at whole pages.
fn is_alike(chain: &Chain, unwound: &BTreeMap<(u32, u64), Unwound>) -> bool {
    let Some(ours) = unwound.get(&(chain.tid, chain.time)) else { return false };
    let perfs = chain.frames.iter().map(|frame| frame.address & 0xfff);
    perfs.eq(ours.frames.iter().map(|address| address & 0xfff))
}
