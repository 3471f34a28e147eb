//! How many call stacks of a recording reach the bottom: as perf unwinds them, and as we do.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use jitscribe_inject::files::PlainFiles;
use jitscribe_inject::{Guess, Recording};
use object::Object;
use serde_json::Value;
use tempfile::TempDir;

use crate::chains::{Chain, Frame};
use crate::jitscribe::{java_agent, jitscribe};
use crate::perf::Perf;
use crate::tool::run;

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

/// A recording with copies of stacks, made by `jitscribe record`.
#[derive(Debug)]
pub struct Stacks {
    dir: TempDir,
    /// What `record` reports of the stacks.
    report: Value,
    said: String,
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
    /// Records a program, which runs in a folder of its own that `prepare` may put something into.
    pub fn record<S: AsRef<OsStr>>(program: &[S], prepare: impl FnOnce(&Path)) -> Self {
        let dir = TempDir::with_prefix("jitscribe-stacks-").expect("a temporary folder");
        prepare(dir.path());
        let mut command = jitscribe();
        command.args(["record", "--json", "--keep-raw", "--call-graph", "dwarf", "-F", "999"]);
        command.args(["-o", "it.data", "--"]).args(program);
        command.current_dir(dir.path()).env("JITSCRIBE_JAVA_AGENT", java_agent());
        let printed = run(&mut command);
        // The program prints to the same place, before.
        let begin = printed.stdout.find("{\n").expect("a report");
        let report: Value = serde_json::from_str(&printed.stdout[begin..]).expect("JSON");
        let perf = Perf::installed();
        let raw = user_stacks(perf.chains(&dir.path().join("it.data.raw/perf.data")));
        let injected = user_stacks(perf.chains(&dir.path().join("it.data")));
        assert!(injected.len() > 30, "only {} stacks", injected.len());
        let report = report["stacks"].clone();
        Self { dir, report, said: printed.stderr, raw, injected, entries: BTreeMap::new() }
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
    ///
    /// # Panics
    /// If not.
    pub fn expect_agreement(&mut self, what: &str) -> WholeStacks {
        let counts = self.count(what);
        let WholeStacks { stacks, injected, counted, alike, .. } = counts;
        assert_eq!(self.report["recorded"], "copied", "{}", self.report);
        assert_eq!(self.report["whole"], counted, "{}", self.report);
        let said = format!("stacks: {counted} of {} (", self.report["stacks"]);
        assert!(self.said.contains(&said), "no {said}: {}", self.said);
        // perf caches by address how it unwinds, also where code was replaced, and processes that were forked lose some of their files.
        let few = stacks / 50 + 2;
        assert!(counted.abs_diff(injected) <= few, "{counts:?} {}", self.report);
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
        let path = self.dir.path().join("it.data");
        let mut found = BTreeMap::new();
        let mut recording = Recording::open(&path, &|_| {}).expect("a recording");
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
