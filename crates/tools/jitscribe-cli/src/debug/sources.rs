//! What is known about the code of a process: its code logs, the jitdumps that it has mapped, and its perf map.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use code_index::{CodeIndex, JITDUMP, PERF_MAP, translate_log};

use crate::files::content;
use crate::files::{Believed, Inode, Kind, jitdump_pid, looks_like_marker, open_owned_by};
use crate::foreign::{self, Patience, Task};
use crate::process::{self, Core, DumpContext, LogDump, Mapping, WrittenFile};
use crate::{Error, Result, text};

/// What is known about the code. Later files take precedence over earlier ones, where both describe an address.
#[derive(Debug, Default)]
pub struct Sources {
    /// Perf maps and jitdumps that the process wrote by itself.
    files: Vec<Cached>,
    /// The logs, merged into one jitdump; empty if there is none.
    log: Content,
    /// The addresses of the logs.
    pub logs: Vec<u64>,
    /// What was not read, and why.
    pub notes: Vec<String>,
}

/// A file as it was when it was read.
#[derive(Debug)]
struct Cached {
    path: PathBuf,
    kind: Kind,
    state: FileState,
    content: Content,
}

/// What a file contains.
#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// Its codes by address; computed when an address is asked for.
    index: OnceCell<CodeIndex>,
}

impl Content {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, index: OnceCell::new() }
    }

    fn index(&self, kind: Kind) -> &CodeIndex {
        self.index.get_or_init(|| {
            let mut index = CodeIndex::new();
            let format = match kind {
                Kind::Jitdump => JITDUMP,
                Kind::PerfMap => PERF_MAP,
            };
            // A file of which nothing can be read has no code.
            let _ = index.add(&format, &self.bytes);
            index
        })
    }
}

/// Changes when the file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// A file to read, the owner that it must have, and what it contains.
struct Found {
    path: PathBuf,
    kind: Kind,
    owner: Option<u32>,
}

impl Sources {
    /// Perf maps and jitdumps, those with precedence last.
    pub fn contents(&self) -> impl Iterator<Item = (Kind, &[u8])> {
        self.all().map(|(kind, content)| (kind, content.bytes.as_slice()))
    }

    /// The same, each with its codes by address. Of what did not change since the last time, these are not computed again.
    pub fn indexed(&self) -> impl DoubleEndedIterator<Item = (&CodeIndex, &[u8])> {
        self.all().map(|(kind, content)| (content.index(kind), content.bytes.as_slice()))
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = (Kind, &Content)> {
        let files = self.files.iter().map(|file| (file.kind, &file.content));
        let log = Some((Kind::Jitdump, &self.log)).filter(|(_, log)| !log.bytes.is_empty());
        files.chain(log)
    }

    /// The number of perf maps and jitdumps that the process wrote by itself. They change without notice.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Reads what a running process has now.
    ///
    /// # Errors
    /// If the process does not exist, may not be inspected, or does not respond.
    pub fn read_process(&mut self, pid: u32) -> Result<()> {
        self.notes.clear();
        let logs = process::logs_of(pid)?;
        self.logs = logs.iter().map(process::Log::address).collect();
        let mut dumps = Vec::new();
        for log in &logs {
            match log.description() {
                Ok(dump) => dumps.push(dump),
                Err(error) => self.notes.push(error.to_string()),
            }
        }
        self.set_log(dumps);
        let is_log =
            |inode: u64, device: u64| logs.iter().any(|log| log.identity() == (pid, device, inode));
        self.read_files(pid, is_log);
        Ok(())
    }

    /// Reads what a core file has.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_core(&mut self, path: &Path) -> Result<()> {
        self.notes.clear();
        let core = Core::open(path)?;
        let logs = core.logs();
        self.logs = logs.iter().map(process::CoreLog::address).collect();
        let read = |log: &process::CoreLog<'_>| {
            process::dump_of(log, DumpContext { until: log.until(), ..DumpContext::default() })
        };
        let dumps = logs.iter().map(|log| read(log).map_err(Error::format(path)));
        let dumps = dumps.collect::<Result<Vec<_>>>()?;
        self.set_log(dumps);
        if self.logs.is_empty() {
            self.notes.push(format!(
                "{}: no code log found: the runtime does not link jitscribe, or the core file lacks shared anonymous memory \
                 (bit 1 of /proc/PID/coredump_filter)",
                text::path(path)
            ));
        }
        Ok(())
    }

    /// Merges logs of one clock; logs of another clock cannot be ordered among them.
    fn set_log(&mut self, mut dumps: Vec<LogDump>) {
        let largest = dumps.iter().max_by_key(|dump| dump.codes);
        let clock = largest.map(|dump| dump.head.arch_timestamp);
        let found = dumps.len();
        dumps.retain(|dump| Some(dump.head.arch_timestamp) == clock);
        if dumps.len() < found {
            self.notes.push("a code log with another clock is left out".into());
        }
        if dumps.iter().any(|dump| dump.is_cut || dump.torn > 0) {
            self.notes.push("a part of the code log could not be read".into());
        }
        let log = process::merge(dumps).map(|dump| dump.bytes).unwrap_or_default();
        if log != self.log.bytes {
            self.log = Content::new(log);
        }
    }

    /// Reads the files that changed since the last time.
    fn read_files(&mut self, pid: u32, is_log: impl Fn(u64, u64) -> bool) {
        let mut before: Vec<Cached> = std::mem::take(&mut self.files);
        for Found { path, kind, owner } in found(pid, is_log) {
            let cached = before.iter().position(|file| file.path == path);
            let cached = cached.map(|at| before.swap_remove(at));
            match read(&path, kind, owner, cached) {
                Ok(file) => self.files.push(file),
                Err(error) => self.notes.push(error.to_string()),
            }
        }
    }
}

/// The files of a process: its perf map, and the jitdumps that it has mapped.
fn found(pid: u32, is_log: impl Fn(u64, u64) -> bool) -> Vec<Found> {
    let believed = Believed::about(None, &BTreeMap::new(), true, &[]);
    let mut all = Vec::new();
    let inner = process::inner_pid(pid).unwrap_or(pid);
    let map = PathBuf::from(format!("/tmp/perf-{inner}.map"));
    if is_of_process(&map, pid)
        && let Ok(owner) = believed.owner(&map, pid, None)
    {
        all.push(Found { path: map, kind: Kind::PerfMap, owner });
    }
    let mappings = foreign::run(Task::Mappings { pid }, Vec::new(), Patience::NAMED);
    let mappings = mappings.map(|answer| answer.bytes).unwrap_or_default();
    for mapping in mappings.split(|byte| *byte == b'\n').filter_map(Mapping::parse) {
        if !looks_like_marker(&mapping.name) || is_log(mapping.inode, mapping.device) {
            continue;
        }
        let path = PathBuf::from(OsStr::from_bytes(&mapping.name));
        let inode = Inode::new(mapping.device, mapping.inode);
        let is_new = all.iter().all(|file| file.path != path);
        if is_new && let Ok(owner) = believed.owner(&path, pid, Some(inode)) {
            all.push(Found { path, kind: Kind::Jitdump, owner });
        }
    }
    // Logs in formats of their own have no marker. A process has them open.
    let written = foreign::run(Task::Written { pid }, Vec::new(), Patience::NAMED);
    let written = written.map(|answer| answer.bytes).unwrap_or_default();
    let written: Vec<WrittenFile> = serde_json::from_slice(&written).unwrap_or_default();
    for WrittenFile { path, file: (device, inode) } in written {
        let path = PathBuf::from(OsStr::from_bytes(&path));
        let is_new = all.iter().all(|file| file.path != path) && !is_log(inode, device);
        if is_new
            && jitdump_pid(&path).is_some()
            && let Ok(owner) = believed.owner(&path, pid, Some(Inode::new(device, inode)))
        {
            all.push(Found { path, kind: Kind::Jitdump, owner });
        }
    }
    all
}

/// Whether a file was changed since the process started. An older one belongs to an earlier process with the same id.
fn is_of_process(path: &Path, pid: u32) -> bool {
    let Ok(facts) = crate::files::facts(path) else { return false };
    let Some(began) = process::began(pid) else { return false };
    let Ok(began) = began.duration_since(std::time::UNIX_EPOCH) else { return false };
    // Times of processes are rounded to hundredths of a second.
    u64::try_from(facts.modified.0).is_ok_and(|modified| modified + 1 >= began.as_secs())
}

fn read(path: &Path, kind: Kind, owner: Option<u32>, cached: Option<Cached>) -> Result<Cached> {
    let file = open_owned_by(owner, path).map_err(Error::file(path))?;
    let facts = file.metadata().map_err(Error::file(path))?;
    let state = FileState {
        device: facts.dev(),
        inode: facts.ino(),
        size: facts.len(),
        modified: (facts.mtime(), facts.mtime_nsec()),
    };
    if let Some(cached) = cached.filter(|cached| cached.state == state) {
        return Ok(cached);
    }
    let content = match kind {
        Kind::PerfMap => content::text(&file, content::LARGEST_MAP),
        Kind::Jitdump => content::binary(&file),
    };
    let bytes = content.map_err(Error::file(path))?.bytes;
    let bytes = translate_log(&bytes, 0).unwrap_or(bytes);
    Ok(Cached { path: path.to_owned(), kind, state, content: Content::new(bytes) })
}
