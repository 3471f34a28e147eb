//! What is known about the code of a process: its code logs, the jitdumps that it has mapped, and its perf map.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use code_index::{CodeIndex, JITDUMP, PERF_MAP, translate_log};

use super::executable_memory::ExecutableMemory;
use crate::core_sources::CoreSources;
use crate::files::content;
use crate::files::{Believed, FoundSource, Inode, Kind, Named, jitdump_pid, looks_like_marker};
use crate::foreign::{self, Patience, Task};
use crate::process::{self, Core, DumpContext, LogDump, Mapping, WrittenFile};
use crate::{Error, Result, text};

/// What is known about the code. Later files take precedence over earlier ones, where both describe an address.
#[derive(Debug, Default)]
pub struct Sources {
    /// Files that the user named. For their kinds, none are searched for.
    named: Vec<(Kind, Named)>,
    /// What was found for a core file, which is searched for once.
    of_core: Option<CoreSources>,
    /// Perf maps and jitdumps that the process wrote by itself.
    files: Vec<Cached>,
    /// The logs, merged into one jitdump; empty if there is none.
    log: Content,
    /// The addresses of the logs.
    pub logs: Vec<u64>,
    /// What was not read, and why.
    pub notes: Vec<String>,
    /// Executable memory, and the mapped files.
    pub memory: ExecutableMemory,
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

impl Sources {
    /// Of a process for which the user named these files.
    pub fn with_named(named: Vec<(Kind, Named)>) -> Self {
        Self { named, ..Self::default() }
    }

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
        let inner = process::inner_pid(pid).unwrap_or(pid);
        let mappings = mappings(pid);
        let mut files = found(pid, inner, &self.kinds(), &mappings, is_log);
        self.memory = ExecutableMemory::of_process(&mappings);
        files.extend(self.named_for(&[pid, inner]));
        self.read_files(files);
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
        let kinds = self.kinds();
        let searched = self.of_core.get_or_insert_with(|| CoreSources::of(&core, &kinds));
        let mut files = searched.found.clone();
        let unused = searched.unused_text();
        files.extend(self.named_for(core.notes().pid.as_slice()));
        self.read_files(files);
        self.memory = ExecutableMemory::of_core(&core);
        if self.logs.is_empty() && self.files.is_empty() {
            let path = text::path(path);
            self.notes.push(format!(
                "{path}: no code log found: the runtime does not link jitscribe, or the core file lacks shared anonymous memory \
                 (bit 1 of /proc/PID/coredump_filter)"
            ));
            let unused = unused.unwrap_or_else(|| "none, as the core file names none".into());
            self.notes.push(format!(
                "{path}: files looked for: {unused}. --jitdump FILE or --perf-map FILE names one"
            ));
        }
        Ok(())
    }

    /// The kinds of files to search for.
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = vec![Kind::Jitdump, Kind::PerfMap];
        kinds.retain(|kind| self.named.iter().all(|(named, _)| named != kind));
        kinds
    }

    /// The files that the user named for the process with these ids.
    fn named_for(&self, pids: &[u32]) -> Vec<FoundSource> {
        let is_of = |file: &&(Kind, Named)| file.1.pid.is_none_or(|pid| pids.contains(&pid));
        let named = self.named.iter().filter(is_of);
        named.map(|(kind, file)| FoundSource::named(*kind, file.path.clone())).collect()
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

    /// Reads the files that changed since the last time. Jitdumps, which say more, have precedence over perf maps.
    fn read_files(&mut self, mut files: Vec<FoundSource>) {
        files.sort_by_key(|file| std::cmp::Reverse(file.kind));
        let mut before: Vec<Cached> = std::mem::take(&mut self.files);
        for found in files {
            let cached = before.iter().position(|file| file.path == found.path);
            let cached = cached.map(|at| before.swap_remove(at));
            match read(&found, cached) {
                Ok(file) => self.files.push(file),
                Err(error) => self.notes.push(error.to_string()),
            }
        }
    }
}

/// The files of a process, of these kinds: its perf map, and the jitdumps that it has mapped.
fn found(
    pid: u32,
    inner: u32,
    kinds: &[Kind],
    mappings: &[Mapping],
    is_log: impl Fn(u64, u64) -> bool,
) -> Vec<FoundSource> {
    let believed = Believed::about(None, &BTreeMap::new(), true, &[]);
    let mut all = Vec::new();
    let map = PathBuf::from(format!("/tmp/perf-{inner}.map"));
    if kinds.contains(&Kind::PerfMap)
        && is_of_process(&map, pid)
        && let Ok(owner) = believed.owner(&map, pid, None)
    {
        all.push(FoundSource { path: map, kind: Kind::PerfMap, owner });
    }
    if !kinds.contains(&Kind::Jitdump) {
        return all;
    }
    for mapping in mappings {
        if !looks_like_marker(&mapping.name) || is_log(mapping.inode, mapping.device) {
            continue;
        }
        let path = PathBuf::from(OsStr::from_bytes(&mapping.name));
        let inode = Inode::new(mapping.device, mapping.inode);
        let is_new = all.iter().all(|file| file.path != path);
        if is_new && let Ok(owner) = believed.owner(&path, pid, Some(inode)) {
            all.push(FoundSource { path, kind: Kind::Jitdump, owner });
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
            all.push(FoundSource { path, kind: Kind::Jitdump, owner });
        }
    }
    all
}

fn mappings(pid: u32) -> Vec<Mapping> {
    let mappings = foreign::run(Task::Mappings { pid }, Vec::new(), Patience::NAMED);
    let mappings = mappings.map(|answer| answer.bytes).unwrap_or_default();
    mappings.split(|byte| *byte == b'\n').filter_map(Mapping::parse).collect()
}

/// Whether a file was changed since the process started. An older one belongs to an earlier process with the same id.
fn is_of_process(path: &Path, pid: u32) -> bool {
    let Ok(facts) = crate::files::facts(path) else { return false };
    let Some(began) = process::began(pid) else { return false };
    let Ok(began) = began.duration_since(std::time::UNIX_EPOCH) else { return false };
    // Times of processes are rounded to hundredths of a second.
    u64::try_from(facts.modified.0).is_ok_and(|modified| modified + 1 >= began.as_secs())
}

fn read(found: &FoundSource, cached: Option<Cached>) -> Result<Cached> {
    let FoundSource { path, kind, .. } = found;
    let file = found.open().map_err(Error::file(path))?;
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
    Ok(Cached { path: path.clone(), kind: *kind, state, content: Content::new(bytes) })
}
