//! Finds the jitdumps and perf maps that belong to a recording.
//!
//! A jitdump is announced by its **marker**: the process maps the file executable only for perf to record the mapping.
//! A perf map is found by its name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use code_timeline::AddressSpaceId;

use crate::Warning;
use crate::files::{
    Index, Inode, Kind, Named, SourceFiles, Untrusted, base_name, is_library, looks_like_dump,
    looks_like_marker, pid_in_name, pid_of_v8_log,
};

use super::earlier_maps::RecordingBegin;
use super::unusable::{self, Unusable, UnusableFile};
use crate::interner::NameId;
use crate::recording::recording_index::RecordingIndex;

/// A file that describes a process's code.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Source {
    /// Its format.
    pub kind: Kind,
    /// Its path on this machine.
    pub path: PathBuf,
    /// The address space whose code it describes.
    pub space: AddressSpaceId,
    /// When its marker was mapped, in nanoseconds of the recording's clock; 0 if that was before the recording began,
    /// `None` if there is no marker.
    pub marker: Option<u64>,
    /// Whether this is a perf map at the path at which perf looks for it.
    pub known_to_perf: bool,
    /// The user to whom it must belong when it is opened; `None` for any.
    pub owner: Option<u32>,
    /// The code logs of V8 that belong to it, and their owners.
    pub v8_logs: Vec<FoundFile>,
}

impl Source {
    /// This file, as one that cannot be used.
    pub(crate) fn unusable(&self, index: &RecordingIndex, why: Unusable) -> UnusableFile {
        let pid = index.processes.pid(self.space);
        UnusableFile { pid, kind: self.kind, path: self.path.clone(), why }
    }
}

/// Where to look for jitdumps and perf maps.
///
/// Jitdumps are always looked for at the paths in the recording. By default nothing else is searched.
#[derive(Clone, Debug, Default)]
pub struct SearchPaths {
    /// Jitdumps to use, instead of others of their processes.
    pub jitdumps: Vec<Named>,
    /// Jitdumps of code logs that were in the memory of processes. They are used along with other jitdumps of their processes.
    pub logs: Vec<Named>,
    /// Perf maps to use.
    pub perf_maps: Vec<Named>,
    /// Code logs of V8 to use with the jitdump of their process, instead of those that are found.
    pub v8_logs: Vec<Named>,
    /// Folders with files that were copied from another machine. They are searched to a depth of six. Files in them are
    /// trusted, whoever owns them.
    pub folders: Vec<PathBuf>,
    /// What `jitscribe record` read from the memory of the recorded processes.
    pub memory: Vec<PathBuf>,
    /// The folder of the recording: searched for files with the names of jitdumps and perf maps.
    pub beside: Option<PathBuf>,
    /// Whether the recording was made on this machine ([`Recording::is_of_this_machine`](crate::Recording)). If so,
    /// files are also looked for in the file systems of the recorded processes that still run, through
    /// `/proc/PID/root`.
    pub recorded_here: bool,
    /// Processes that were observed while they were recorded, and may have ended since.
    pub processes: BTreeMap<u32, SeenProcess>,
}

/// What was observed of a process while it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    /// Its id in its own pid namespace.
    pub inner: u32,
    /// A path by which its root folder can still be reached, if that is not ours.
    pub root: Option<PathBuf>,
    /// Whether it writes a perf map only because the recording asked it to: the map is removed, and perf does not see it.
    pub is_asked: bool,
}

/// The result of the search.
#[derive(Debug, Default)]
pub struct LocatedSources {
    /// The sources.
    pub sources: Vec<Source>,
    /// Warnings for the user: files that are missing or that belong to no process.
    pub warnings: Vec<Warning>,
    /// Files of the processes that cannot be used. There is a warning for each.
    pub unusable: Vec<UnusableFile>,
    /// Number of markers in the recording.
    pub markers: usize,
}

/// Finds the sources of a recording. `begin` is when it began, if that is known well enough to tell which perf maps are of earlier processes.
pub fn locate(
    index: &RecordingIndex,
    paths: &SearchPaths,
    begin: Option<RecordingBegin>,
    files: &dyn SourceFiles,
) -> LocatedSources {
    let mut search = Search {
        index,
        found: LocatedSources::default(),
        folders: search_folders(paths, files),
        used: BTreeSet::new(),
        spaces_with_dump: BTreeSet::new(),
        untrusted: BTreeSet::new(),
        begin: begin.filter(|_| paths.recorded_here),
        earlier: BTreeSet::new(),
        logs: paths.logs.iter().map(|log| log.path.as_path()).collect(),
        paths,
        files,
    };
    search.named_jitdumps();
    search.markers();
    search.logs();
    search.unmarked_jitdumps();
    search.perf_maps();
    search.found
}

struct Search<'s> {
    index: &'s RecordingIndex,
    found: LocatedSources,
    folders: Index,
    /// Files that are sources already.
    used: BTreeSet<PathBuf>,
    spaces_with_dump: BTreeSet<AddressSpaceId>,
    /// Untrusted files that were reported.
    untrusted: BTreeSet<PathBuf>,
    /// When the recording began, if it was made here.
    begin: Option<RecordingBegin>,
    /// Perf maps of earlier processes that were reported.
    earlier: BTreeSet<PathBuf>,
    /// Files that have no marker, whatever their names.
    logs: BTreeSet<&'s Path>,
    paths: &'s SearchPaths,
    files: &'s dyn SourceFiles,
}

/// A file that was found, and the owner that it must have; `None` for any.
pub type FoundFile = (PathBuf, Option<u32>);

impl Search<'_> {
    fn named_jitdumps(&mut self) {
        let paths = self.paths;
        for Named { pid, path } in &paths.jitdumps {
            let Some(header) = self.files.jitdump_pid(path) else {
                let why = self.why_unusable(path).unwrap_or(Unusable::OtherFormat);
                let pid = pid.or_else(|| pid_in_name(path)).or_else(|| self.only_process());
                self.reject(pid.unwrap_or_default(), Kind::Jitdump, path, why);
                continue;
            };
            let marker = self.marker_named_like(path, *pid);
            let space = match (marker, *pid) {
                (Some((space, _)), _) => Some(space),
                (None, Some(pid)) => self.index.processes.at(pid, u64::MAX),
                (None, None) => [Some(header), pid_in_name(path)]
                    .into_iter()
                    .flatten()
                    .find_map(|pid| self.index.processes.at(pid, u64::MAX)),
            };
            match space {
                Some(space) => {
                    let found = (path.clone(), None);
                    self.add(Kind::Jitdump, found, space, marker.map(|(_, time)| time));
                }
                None => {
                    let pid = pid.unwrap_or(header);
                    self.warn(Warning::NoSuchProcess { path: path.clone(), pid });
                }
            }
        }
    }

    /// The address space whose marker mapping has the same file name as `path`.
    fn marker_named_like(&self, path: &Path, pid: Option<u32>) -> Option<(AddressSpaceId, u64)> {
        let name = path.file_name()?.as_bytes();
        let index = self.index;
        let mut marked = index.maps.iter().filter(|map| {
            base_name(index.name(map)) == name
                && pid.is_none_or(|pid| index.processes.pid(map.space) == pid)
        });
        marked.next().map(|map| (map.space, map.time))
    }

    /// Finds the file of every marker mapping.
    fn markers(&mut self) {
        let index = self.index;
        let is_marker: Vec<bool> = index.names.iter().map(looks_like_marker).collect();
        let mut asked: HashMap<NameId, bool> = HashMap::new();
        let mut seen: BTreeSet<(AddressSpaceId, usize)> = BTreeSet::new();
        // If the user has named the dump, no other is looked for.
        let named_by_user = self.spaces_with_dump.clone();
        for map in index.maps.iter().filter(|map| !map.anonymous) {
            let name = index.name(map);
            let by_name = is_marker[map.name.index()];
            // Any mapped file may be a dump, whatever its name: its header decides.
            let marked = by_name
                || *asked.entry(map.name).or_insert_with(|| {
                    let path = Path::new(OsStr::from_bytes(name));
                    may_be_jitdump(name) && self.files.jitdump_pid(path).is_some()
                });
            if !marked || !seen.insert((map.space, map.name.index())) {
                continue;
            }
            self.found.markers += 1;
            if named_by_user.contains(&map.space) {
                let mut of_space =
                    self.found.sources.iter_mut().filter(|source| source.space == map.space);
                if let Some(source) = of_space.find(|source| source.marker.is_none()) {
                    source.marker = Some(map.time);
                }
                continue;
            }
            let pid = index.processes.pid(map.space);
            let recorded = Path::new(OsStr::from_bytes(name));
            match self.find_dump(recorded, pid, index.inode(pid, map.name)) {
                Some(found) => self.add(Kind::Jitdump, found, map.space, Some(map.time)),
                // This was reported already.
                None if self.untrusted.contains(recorded) => {}
                None => {
                    let there = self.paths_in_process(pid, recorded, recorded);
                    let unusable =
                        there.iter().find_map(|path| Some((path, self.why_unusable(path)?)));
                    match unusable {
                        Some((path, why)) => self.reject(pid, Kind::Jitdump, path, why),
                        None => self.reject(pid, Kind::Jitdump, recorded, Unusable::Missing),
                    }
                }
            }
        }
    }

    /// A process may have several logs, in memory and in files: two of its libraries may have one each.
    fn logs(&mut self) {
        let paths = self.paths;
        for Named { pid, path } in &paths.logs {
            let pid = pid.or_else(|| self.files.jitdump_pid(path));
            match pid.and_then(|pid| self.index.processes.at(pid, u64::MAX)) {
                Some(space) => self.add(Kind::Jitdump, (path.clone(), None), space, None),
                None => self.warn(Warning::NoSuchProcess {
                    path: path.clone(),
                    pid: pid.unwrap_or_default(),
                }),
            }
        }
    }

    /// The current path of the jitdump with this recorded path.
    fn find_dump(&mut self, recorded: &Path, pid: u32, mapped: Option<Inode>) -> Option<FoundFile> {
        let name = recorded.file_name()?;
        // Two scribes of one process have dumps with the same name, in a folder and in a subfolder of it.
        let mut named: Vec<&Path> = self.folders.named(name).collect();
        if named.len() > 1 {
            named.sort_by_cached_key(|path| Reverse(common_end(path, recorded)));
        }
        let named: Vec<PathBuf> = named.into_iter().map(Path::to_owned).collect();
        named
            .into_iter()
            .chain(self.paths_in_process(pid, recorded, recorded))
            .filter(|path| self.files.jitdump_pid(path).is_some())
            .chain(self.folders.jitdump_of(pid))
            .filter(|path| !self.logs.contains(path.as_path()))
            .collect::<Vec<_>>()
            .into_iter()
            .find_map(|path| self.check_trust(path, Kind::Jitdump, pid, mapped))
    }

    /// Why a file cannot be used as a jitdump. `None` if it is not there.
    fn why_unusable(&self, path: &Path) -> Option<Unusable> {
        match self.files.open(path, None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Unusable::from(&error)),
            Ok(file) if file.metadata().is_ok_and(|file| file.len() == 0) => Some(Unusable::Empty),
            Ok(_) => Some(Unusable::OtherFormat),
        }
    }

    /// Reports a file of process `pid` that cannot be used.
    fn reject(&mut self, pid: u32, kind: Kind, path: &Path, why: Unusable) {
        let file = UnusableFile { pid, kind, path: path.to_owned(), why };
        self.warn(file.warning(self.index.comm(pid)));
        unusable::add(&mut self.found.unusable, file);
    }

    /// A file that was found for `pid`, unless it is untrusted.
    fn check_trust(
        &mut self,
        path: PathBuf,
        kind: Kind,
        pid: u32,
        mapped: Option<Inode>,
    ) -> Option<FoundFile> {
        // Files in folders that the user named are trusted.
        if self.paths.folders.iter().any(|folder| path.starts_with(folder)) {
            return Some((path, None));
        }
        match self.files.trust(&path, pid, mapped) {
            Ok(owner) => Some((path, owner)),
            Err(Untrusted { user }) => {
                // The folder of the recording may be the recorded folder, under another path.
                if self.untrusted.insert(std::path::absolute(&path).unwrap_or(path.clone())) {
                    let space = self.index.processes.at(pid, u64::MAX);
                    // That of an earlier process says nothing about this one.
                    match space.is_some_and(|space| self.is_earlier(kind, &path, None, space)) {
                        true => self.warn(Warning::Untrusted { path, kind, pid, user }),
                        false => self.reject(pid, kind, &path, Unusable::Untrusted { user }),
                    }
                }
                None
            }
        }
    }

    /// A perf map that was found for `space`, unless it is an earlier process's.
    fn check_age(&mut self, found: FoundFile, space: AddressSpaceId) -> Option<FoundFile> {
        let (path, owner) = &found;
        if !self.is_earlier(Kind::PerfMap, path, *owner, space) {
            return Some(found);
        }
        // The folder of the recording may be `/tmp`.
        if self.earlier.insert(std::path::absolute(path).unwrap_or(path.clone())) {
            let pid = self.index.processes.pid(space);
            self.warn(Warning::OfEarlierProcess { path: path.clone(), pid });
        }
        None
    }

    /// Whether a perf map that was found for `space` was last changed before the recording and this process began.
    fn is_earlier(
        &self,
        kind: Kind,
        path: &Path,
        owner: Option<u32>,
        space: AddressSpaceId,
    ) -> bool {
        let is_named = self.paths.folders.iter().any(|folder| path.starts_with(folder));
        // Only those that began after the recording did.
        let is_new = kind == Kind::PerfMap && self.index.processes.from(space) > 0;
        let Some(begin) = self.begin.filter(|_| is_new && !is_named) else { return false };
        // What cannot be opened is reported when it is read.
        self.files.open(path, owner).is_ok_and(|file| begin.is_behind(&file))
    }

    /// The possible paths of a file that `pid` knows as `inside`, and that we would look for at `here`. A process in a
    /// container sees other files than we do; while it runs, or if its root is held, they can be reached.
    fn paths_in_process(&self, pid: u32, inside: &Path, here: &Path) -> Vec<PathBuf> {
        let held = self.paths.processes.get(&pid).and_then(|process| process.root.clone());
        let root = held.unwrap_or_else(|| Path::new("/proc").join(pid.to_string()).join("root"));
        match inside.strip_prefix("/").map(|inside| root.join(inside)) {
            Ok(inside) if self.paths.recorded_here && self.files.same_file(&inside, here) => {
                vec![here.to_owned()]
            }
            Ok(inside) if self.paths.recorded_here => vec![inside, here.to_owned()],
            _ => vec![here.to_owned()],
        }
    }

    /// Jitdumps in the folders that have no marker in the recording: those whose header or name has the pid of a
    /// process without a jitdump.
    fn unmarked_jitdumps(&mut self) {
        for (pid, path) in self.folders.jitdumps() {
            if self.used.contains(&path) {
                continue;
            }
            let space = [Some(pid), pid_in_name(&path)]
                .into_iter()
                .flatten()
                .find_map(|pid| self.index.processes.at(pid, u64::MAX));
            if let Some(space) = space.filter(|space| !self.spaces_with_dump.contains(space))
                && let pid = self.index.processes.pid(space)
                && let Some(found) = self.check_trust(path, Kind::Jitdump, pid, None)
            {
                self.add(Kind::Jitdump, found, space, None);
            }
        }
    }

    fn perf_maps(&mut self) {
        let mut named: BTreeMap<u32, Vec<FoundFile>> = BTreeMap::new();
        let given = self.paths;
        for Named { pid, path } in &given.perf_maps {
            let whose = pid.or_else(|| pid_in_name(path)).or_else(|| self.only_process());
            match whose.filter(|&pid| self.index.processes.at(pid, u64::MAX).is_some()) {
                Some(pid) => named.entry(pid).or_default().push((path.clone(), None)),
                None => self.warn(Warning::NobodysMap { path: path.clone() }),
            }
        }
        let pids: Vec<u32> = self.index.processes.pids().collect();
        for pid in pids {
            // The file is of the last program that ran under this pid.
            let Some(space) = self.index.processes.at(pid, u64::MAX) else { continue };
            let name = format!("perf-{pid}.map");
            let found = named.remove(&pid).unwrap_or_else(|| {
                let seen = self.paths.processes.get(&pid);
                let inner = seen.map_or_else(|| inner_pid(pid), |process| process.inner);
                let inside = format!("/tmp/perf-{inner}.map");
                let places =
                    self.paths_in_process(pid, inside.as_ref(), &Path::new("/tmp").join(&name));
                let folders: Vec<PathBuf> =
                    self.folders.named(OsStr::new(&name)).map(Path::to_owned).collect();
                let mut there =
                    folders.into_iter().chain(places).filter(|path| self.files.is_file(path));
                let found = there.find_map(|path| {
                    let found = self.check_trust(path, Kind::PerfMap, pid, None)?;
                    self.check_age(found, space)
                });
                found.into_iter().collect()
            });
            for one in found {
                self.add(Kind::PerfMap, one, space, None);
            }
        }
    }

    /// The only process that has a name, or the only one with executable memory that no file backs; `None` if there are several.
    fn only_process(&self) -> Option<u32> {
        let processes = &self.index.processes;
        let only = |mut pids: BTreeSet<u32>| pids.pop_first().filter(|_| pids.is_empty());
        let anonymous = || {
            let maps = self.index.maps.iter().filter(|map| map.anonymous);
            maps.map(|map| processes.pid(map.space)).collect()
        };
        only(processes.pids().filter(|&pid| pid != 0).collect()).or_else(|| only(anonymous()))
    }

    fn add(
        &mut self,
        kind: Kind,
        (path, owner): FoundFile,
        space: AddressSpaceId,
        marker: Option<u64>,
    ) {
        if kind == Kind::Jitdump {
            self.spaces_with_dump.insert(space);
        }
        self.used.insert(path.clone());
        let pid = self.index.processes.pid(space);
        let is_asked = self.paths.processes.get(&pid).is_some_and(|process| process.is_asked);
        let known_to_perf = kind == Kind::PerfMap
            && !is_asked
            && path == Path::new(&format!("/tmp/perf-{pid}.map"));
        let v8_logs = if kind == Kind::Jitdump { self.v8_logs(&path, pid) } else { Vec::new() };
        self.found.sources.push(Source {
            kind,
            path,
            space,
            marker,
            known_to_perf,
            owner,
            v8_logs,
        });
    }

    /// The code logs of V8 that belong to the jitdump of a process.
    fn v8_logs(&self, dump: &Path, pid: u32) -> Vec<FoundFile> {
        // In a container, V8 names its files by another pid than that of the recording.
        let inner = pid_in_name(dump).unwrap_or(pid);
        let is_named = |named: &&Named| match named.pid {
            Some(named) => named == pid,
            None => named
                .path
                .file_name()
                .map(OsStr::as_bytes)
                .and_then(pid_of_v8_log)
                .is_none_or(|pid| pid == inner),
        };
        if !self.paths.v8_logs.is_empty() {
            let named = self.paths.v8_logs.iter().filter(is_named);
            return named.map(|named| (named.path.clone(), None)).collect();
        }
        // The name without --logfile-per-isolate.
        let shared = dump.with_file_name("v8.log");
        let shared = Some(shared).filter(|path| self.files.is_file(path));
        let logs = self.folders.v8_logs_of(inner).iter().cloned().chain(shared);
        let trusted = |path: PathBuf| {
            if self.paths.folders.iter().any(|folder| path.starts_with(folder)) {
                return Some((path, None));
            }
            let owner = self.files.trust(&path, pid, None).ok()?;
            Some((path, owner))
        };
        logs.filter_map(trusted).collect()
    }

    fn warn(&mut self, warning: Warning) {
        self.found.warnings.push(warning);
    }
}

/// The number of trailing components that two paths have in common.
fn common_end(one: &Path, other: &Path) -> usize {
    let pairs = one.components().rev().zip(other.components().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Whether a mapped file could be a jitdump under another name. Libraries are not opened.
fn may_be_jitdump(name: &[u8]) -> bool {
    let base = base_name(name);
    name.starts_with(b"/") && !is_library(base) && !name.starts_with(b"/dev/")
}

/// The files in the folders that the user named, and beside the recording.
fn search_folders(paths: &SearchPaths, files: &dyn SourceFiles) -> Index {
    let mut folders = Index::default();
    for folder in &paths.folders {
        folders.add_all(folder, files);
    }
    if let Some(beside) = &paths.beside {
        let wanted = |name: &[u8]| {
            looks_like_dump(name)
                || name.starts_with(b"perf-") && name.ends_with(b".map")
                || pid_of_v8_log(name).is_some()
        };
        folders.add_some(beside, &wanted, files);
    }
    folders
}

/// The pid of a process in its innermost namespace, if it still runs.
fn inner_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NStgid:"));
    line.and_then(|pids| pids.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::common_end;

    #[test]
    fn the_dump_of_the_same_folder_is_nearer() {
        let recorded = Path::new("/run/dumps/2/jit-7.dump");
        let near = common_end(Path::new("/moved/2/jit-7.dump"), recorded);
        assert!(near > common_end(Path::new("/moved/jit-7.dump"), recorded));
        assert_eq!(common_end(recorded, recorded), recorded.components().count());
        assert_eq!(common_end(Path::new("/a"), Path::new("/b")), 0);
    }
}
