//! Recordings made while the test runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_privilege::{Privilege, have};

use crate::chains::Chain;
use crate::compare::{Comparison, Natives, expect_chains_kept};
use crate::folder::Folder;
use crate::jitscribe;
use crate::line_oracle::LineOracle;
use crate::map_oracle::{MapOracle, MapTally, expect_map_applied};
use crate::perf::Perf;
use crate::sample::{Sample, is_perf_map};
use crate::tool::{ToolOutput, crate_dir, run};

/// A recording of a real program, with a folder that was the program's working directory.
///
/// If the folder is its own, what the program and perf left in `/tmp` under its process ids is removed when this is dropped.
#[derive(Debug)]
pub struct Recording {
    dir: Folder,
    perf: Perf,
    /// What the recorded program printed.
    pub printed: ToolOutput,
    raw: Vec<Sample>,
}

/// How a recording is made.
#[derive(Debug)]
pub struct Recorder {
    dir: Folder,
    perf: Perf,
    options: Vec<String>,
    env: Vec<(String, String)>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// A recording on the monotonic clock, with frame-pointer call chains.
    pub fn new() -> Self {
        Self::at(Folder::own())
    }

    /// The same in a folder that tests share.
    pub(crate) fn in_folder(dir: &Path) -> Self {
        Self::at(Folder::Shared(dir.to_owned()))
    }

    fn at(dir: Folder) -> Self {
        Self {
            dir,
            perf: Perf::installed(),
            options: ["-k", "mono", "-F", "999", "-g"].map(str::to_owned).to_vec(),
            env: Vec::new(),
        }
    }

    /// Replaces the options given to `perf record`.
    pub fn options(mut self, options: &[&str]) -> Self {
        self.options = options.iter().map(|&option| option.to_owned()).collect();
        self
    }

    /// Sets a variable for the recorded program.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The folder in which the program will run.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Records `program` with its arguments until it ends.
    pub fn record<S: AsRef<OsStr>>(self, program: &[S]) -> Recording {
        let mut command = self.command();
        command.arg("--").args(program);
        let printed = run(&mut command);
        self.finish(printed)
    }

    /// `perf record` with its options, ready for what to record.
    pub fn command(&self) -> Command {
        let mut command = self.perf.command();
        // Without -N each recording would copy the runtime's binary into the home folder.
        command.args(["record", "-q", "-N", "-o"]).arg(self.dir.path().join("perf.data"));
        command.args(&self.options).current_dir(self.dir.path());
        // Runtimes that look for a home folder get the recording's.
        command.env("JITDUMPDIR", self.dir.path()).envs(self.env.iter().map(|(n, v)| (n, v)));
        command
    }

    /// Takes over what a command made from [`Recorder::command`] recorded.
    pub fn finish(self, printed: ToolOutput) -> Recording {
        Recording::of(self.dir, self.perf, printed)
    }
}

impl Recording {
    fn of(dir: Folder, perf: Perf, printed: ToolOutput) -> Self {
        let raw = perf.samples(&dir.path().join("perf.data"));
        assert!(raw.len() > 100, "only {} samples were recorded", raw.len());
        Self { dir, perf, printed, raw }
    }

    /// One that lies in a folder that tests share.
    pub(crate) fn open(dir: PathBuf) -> Self {
        Self::of(Folder::Shared(dir), Perf::installed(), ToolOutput::default())
    }

    /// The folder in which the program ran.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The recording itself.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("perf.data")
    }

    /// The perf that recorded it.
    pub fn perf(&self) -> &Perf {
        &self.perf
    }

    /// The one process that was recorded.
    pub fn pid(&self) -> u32 {
        let pids = self.pids();
        assert_eq!(pids.len(), 1, "one process was expected, not {pids:?}");
        *pids.first().expect("one")
    }

    /// The samples before any injection.
    pub fn raw(&self) -> &[Sample] {
        &self.raw
    }

    /// The process ids that were sampled.
    pub fn pids(&self) -> BTreeSet<u32> {
        self.raw.iter().map(|sample| sample.pid).collect()
    }

    /// The samples after stock `perf inject --jit`.
    pub fn stock(&self) -> Vec<Sample> {
        let out = self.dir.path().join("stock.data");
        self.perf.inject(&self.data(), &out);
        self.perf.samples(&out)
    }

    /// The samples after `jitscribe inject`, which is run once of a recording that tests share.
    pub fn ours(&self) -> InjectedRecording {
        let data = self.dir.path().join("ours.data");
        match self.dir {
            Folder::Shared(_) if data.exists() => self.injected(data, ToolOutput::default()),
            _ => self.ours_with::<&OsStr>(&[]),
        }
    }

    /// The samples after `jitscribe inject` with options.
    pub fn ours_with<S: AsRef<OsStr>>(&self, options: &[S]) -> InjectedRecording {
        let data = self.dir.path().join("ours.data");
        let printed = jitscribe::inject(&self.data(), &data, options);
        self.injected(data, printed)
    }

    /// A recording that a command made of this one.
    pub fn injected(&self, data: PathBuf, printed: ToolOutput) -> InjectedRecording {
        let samples = self.perf.samples(&data);
        InjectedRecording { data, printed, samples }
    }

    /// Injects, checks that nothing is lost against stock perf nor between perf 6.1 and 6.12, and says how it
    /// went.
    pub fn expect_as_good_as_stock(&self) -> Tally {
        let (stock, named_by_files) = named_by_files_first(self.stock(), &self.raw);
        let ours = self.ours();
        let verdict = Comparison::of(&stock, &ours.samples).expect_nothing_lost(Natives::BySymbol);
        ours.expect_read_alike_by_newer_perf();
        let raw = self.perf.chains(&self.data());
        let mut stock = self.perf.chains(&self.dir.path().join("stock.data"));
        frames_named_by_files_first(&mut stock, &raw);
        expect_chains_kept(&stock, &self.perf.chains(&ours.data));
        Tally {
            same: verdict.same,
            named_by_files,
            gained: verdict.gained.len(),
            unknown: verdict.unknown.len(),
            all: self.raw.len(),
        }
    }

    /// Injects, and checks every sample against the map that the one recorded process wrote to `/tmp`.
    pub fn expect_map_applied(&self) -> MapTally {
        self.expect_map_applied_in(&self.ours())
    }

    /// The same of what was injected already.
    pub fn expect_map_applied_in(&self, ours: &InjectedRecording) -> MapTally {
        let map = MapOracle::read(format!("/tmp/perf-{}.map", self.pid()).as_ref());
        let tally = expect_map_applied(&self.raw, &ours.samples, &map);
        assert!(tally.named > self.raw.len() / 50, "{tally:?}");
        ours.expect_read_alike_by_newer_perf();
        tally
    }
}

/// What stock perf made of the samples, except where a program or library names the address without it: V8's dump has the builtins in
/// node's own file, which we leave to the file. Also returns how many of these stock perf has in jitted code.
fn named_by_files_first(stock: Vec<Sample>, raw: &[Sample]) -> (Vec<Sample>, usize) {
    let comparison = Comparison::of(&stock, raw);
    assert!(comparison.missing.is_empty() && comparison.extra.is_empty());
    let by_file = |raw: &Sample| raw.symbol.is_some() && !raw.in_anonymous_memory();
    let pairs = &comparison.pairs;
    let count = pairs.iter().filter(|(stock, raw)| stock.is_jitted() && by_file(raw)).count();
    let choose =
        |&(stock, raw): &(&Sample, &Sample)| if by_file(raw) { raw } else { stock }.clone();
    (pairs.iter().map(choose).collect(), count)
}

/// The same for the frames of call chains, which are in the same order.
fn frames_named_by_files_first(stock: &mut [Chain], raw: &[Chain]) {
    assert_eq!(stock.len(), raw.len());
    for (stock, raw) in stock.iter_mut().zip(raw) {
        assert_eq!((stock.tid, stock.time), (raw.tid, raw.time));
        // Unwound stacks may be longer than without images.
        if stock.frames.len() == raw.frames.len() {
            for (stock, raw) in stock.frames.iter_mut().zip(&raw.frames) {
                let is_file = raw.dso.starts_with('/')
                    && !raw.dso.rsplit('/').next().is_some_and(is_perf_map);
                if raw.symbol.is_some() && is_file {
                    *stock = raw.clone();
                }
            }
        }
    }
}

/// Checks every sample's source line against the dump's own table, and returns how many have one.
pub fn expect_lines_of(dump: &Path, samples: &[Sample]) -> usize {
    let oracle = LineOracle::read(dump);
    let mut checked = 0;
    for sample in samples.iter().filter(|sample| sample.symbol.is_some()) {
        let Some(Some((file, line))) = oracle.at(sample.ip) else { continue };
        let file = file.rsplit('/').next().unwrap_or(file);
        let shown = sample.srcline.as_deref().and_then(|shown| shown.split_whitespace().next());
        assert_eq!(shown, Some(format!("{file}:{line}").as_str()), "{sample}");
        checked += 1;
    }
    assert!(checked > 0, "none of {} samples has a line in the dump", samples.len());
    checked
}

/// How many samples became what; see [`Comparison`].
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    /// Resolved as stock perf did.
    pub same: usize,
    /// Resolved by stock perf in jitted code, and by a program's or library's own symbols otherwise.
    pub named_by_files: usize,
    /// Resolved by ours alone.
    pub gained: usize,
    /// In anonymous memory and resolved by neither.
    pub unknown: usize,
    /// All samples.
    pub all: usize,
}

/// A recording after `jitscribe inject`.
#[derive(Debug)]
pub struct InjectedRecording {
    /// The injected recording.
    pub data: PathBuf,
    /// What the command printed.
    pub printed: ToolOutput,
    /// Its samples, as the recording's perf reads them.
    pub samples: Vec<Sample>,
}

impl InjectedRecording {
    /// The folder of the injected recording, which also has the images.
    fn folder(&self) -> &Path {
        self.data.parent().expect("the recording lies in a folder")
    }

    /// Checks that perf 6.12 resolves jitted code as the recording's perf does.
    pub fn expect_read_alike_by_newer_perf(&self) {
        if !have(&[Privilege::NewerPerf]) {
            return;
        }
        let newer = Perf::newer().samples(&self.data);
        assert_eq!(newer.len(), self.samples.len(), "samples read by perf 6.12");
        let differing: Vec<_> = self
            .samples
            .iter()
            .zip(&newer)
            .filter(|(ours, _)| ours.dso_in(self.folder()))
            .filter(|(ours, newer)| ours.symbol != newer.symbol || ours.dso != newer.dso)
            .collect();
        assert!(
            differing.is_empty(),
            "perf 6.12 reads {} samples otherwise, the first ones:\n{:#?}",
            differing.len(),
            &differing[..differing.len().min(5)]
        );
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if matches!(self.dir, Folder::Shared(_)) {
            return;
        }
        let pids = self.pids();
        let Ok(entries) = std::fs::read_dir("/tmp") else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let ours = ["jit-", "jitted-", "perf-", "perfinfo-"].iter().any(|prefix| {
                let digits = name.strip_prefix(prefix).and_then(|rest| {
                    rest.split(['-', '.']).next().and_then(|pid| pid.parse::<u32>().ok())
                });
                digits.is_some_and(|pid| pids.contains(&pid))
            });
            if ours {
                // A file that went by itself is no failure.
                _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// A program of `tests/workloads`.
pub fn workload(name: &str) -> PathBuf {
    let path = crate_dir().join("workloads").join(name);
    assert!(path.exists(), "there is no workload {name}");
    path
}

/// The name of a JavaScript function, behind V8's tag; `None` if it is none. The tag is `LazyCompile` or `Function` up to node 18, and
/// `JS` since.
pub fn without_tag(name: &str) -> Option<&str> {
    let (tag, name) = name.split_once(':')?;
    ["LazyCompile", "Function", "JS"].contains(&tag).then_some(name)
}
