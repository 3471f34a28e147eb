//! Finds the jitdumps and perf maps that belong to a recording.
//!
//! A jitdump makes itself known by its **marker**: the process maps the file executable, for no
//! other purpose than that perf sees it. A perf map is known by its name alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use code_timeline::AddressSpaceId;

use crate::Warning;
use crate::files::{
    Index, Inode, Kind, Named, SourceFiles, Untrusted, base_name, looks_like_marker, pid_in_name,
};

use super::interner::NameId;
use super::recording_index::RecordingIndex;

/// A file that describes a process's code.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Source {
    /// What it is.
    pub kind: Kind,
    /// Its path on this machine.
    pub path: PathBuf,
    /// The address space whose code it describes.
    pub space: AddressSpaceId,
    /// When its marker was mapped, in nanoseconds of the recording's clock; 0 before the recording began, `None` without a
    /// marker.
    pub marker: Option<u64>,
    /// Whether this is a perf map at the path at which perf looks for it.
    pub known_to_perf: bool,
    /// The user to whom it must belong when it is opened; `None` for any.
    pub owner: Option<u32>,
}

/// Where jitdumps and perf maps are looked for.
///
/// Jitdumps are also looked for at the paths that the recording has of them. By default nothing else is searched.
#[derive(Clone, Debug, Default)]
pub struct SearchPaths {
    /// Jitdumps to be used.
    pub jitdumps: Vec<Named>,
    /// Perf maps to be used.
    pub perf_maps: Vec<Named>,
    /// Folders with files that moved here from another machine. They are searched to a depth of six, and what lies in them is
    /// trusted whoever owns it.
    pub folders: Vec<PathBuf>,
    /// The folder of the recording: searched for files whose names are those of jitdumps and perf maps.
    pub beside: Option<PathBuf>,
    /// Whether the recording was made on this machine ([`Recording::is_of_this_machine`](super::Recording)): then files are
    /// also looked for as the recorded processes see them, if they still run, by `/proc/PID/root`.
    pub recorded_here: bool,
}

/// What was found, and what was not.
#[derive(Debug, Default)]
pub struct Located {
    /// The sources.
    pub sources: Vec<Source>,
    /// What the user must know: files that are missing or belong to no one.
    pub warnings: Vec<Warning>,
    /// Whether the recording has any marker.
    pub markers: usize,
}

/// Finds the sources of a recording.
pub fn locate(index: &RecordingIndex, paths: &SearchPaths, files: &dyn SourceFiles) -> Located {
    let mut search = Search {
        index,
        found: Located::default(),
        folders: search_folders(paths, files),
        taken: BTreeSet::new(),
        spaces_with_dump: BTreeSet::new(),
        strange: BTreeSet::new(),
        paths,
        files,
    };
    search.named_jitdumps();
    search.markers();
    search.unmarked_jitdumps();
    search.perf_maps();
    search.found
}

struct Search<'s> {
    index: &'s RecordingIndex,
    found: Located,
    folders: Index,
    /// Files that are a source already.
    taken: BTreeSet<PathBuf>,
    spaces_with_dump: BTreeSet<AddressSpaceId>,
    /// Files of strangers that were told of.
    strange: BTreeSet<PathBuf>,
    paths: &'s SearchPaths,
    files: &'s dyn SourceFiles,
}

/// A file that was found, and whose it must be; `None` for any user's.
type Found = (PathBuf, Option<u32>);

impl Search<'_> {
    fn named_jitdumps(&mut self) {
        let paths = self.paths;
        for Named { pid, path } in &paths.jitdumps {
            let Some(header) = self.files.jitdump_pid(path) else {
                self.warn(Warning::NoJitdump { path: path.clone() });
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

    /// The life whose marker mapping has the same file name as `path`.
    fn marker_named_like(&self, path: &Path, pid: Option<u32>) -> Option<(AddressSpaceId, u64)> {
        let name = path.file_name()?.as_bytes();
        let index = self.index;
        let mut marked = index.maps.iter().filter(|map| {
            base_name(index.name(map)) == name
                && pid.is_none_or(|pid| index.processes.pid(map.space) == pid)
        });
        marked.next().map(|map| (map.space, map.time))
    }

    /// Follows every marker mapping to its file.
    fn markers(&mut self) {
        let index = self.index;
        let is_marker: Vec<bool> = index.names.iter().map(looks_like_marker).collect();
        let mut asked: HashMap<NameId, bool> = HashMap::new();
        let mut seen: BTreeSet<(AddressSpaceId, usize)> = BTreeSet::new();
        // Where the user said which dump it is, there is none to look for.
        let said = self.spaces_with_dump.clone();
        for map in index.maps.iter().filter(|map| !map.anonymous) {
            let name = index.name(map);
            let by_name = is_marker[map.name.index()];
            // Any mapped file may be one, whatever its name: its header says.
            let marked = by_name
                || *asked.entry(map.name).or_insert_with(|| {
                    let path = Path::new(OsStr::from_bytes(name));
                    worth_a_look(name) && self.files.jitdump_pid(path).is_some()
                });
            if !marked || !seen.insert((map.space, map.name.index())) {
                continue;
            }
            self.found.markers += 1;
            if said.contains(&map.space) {
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
                // Why it is left out was said.
                None if self.strange.contains(recorded) => {}
                None => {
                    let (path, comm) = (recorded.to_owned(), index.comm(pid));
                    self.warn(Warning::JitdumpMissing { path, pid, comm });
                }
            }
        }
    }

    /// Where the jitdump with this recorded path is now.
    fn find_dump(&mut self, recorded: &Path, pid: u32, mapped: Option<Inode>) -> Option<Found> {
        let name = recorded.file_name()?;
        // Two scribes of one process have dumps of one name, in a folder and in one within it.
        let mut named: Vec<&Path> = self.folders.named(name).collect();
        if named.len() > 1 {
            named.sort_by_cached_key(|path| Reverse(common_end(path, recorded)));
        }
        let named: Vec<PathBuf> = named.into_iter().map(Path::to_owned).collect();
        named
            .into_iter()
            .chain(self.of_living(pid, recorded, recorded))
            .filter(|path| self.files.jitdump_pid(path).is_some())
            .chain(self.folders.jitdump_of(pid))
            .find_map(|path| self.believe(path, Kind::Jitdump, pid, mapped))
    }

    /// A file that was found for `pid`, unless it is a stranger's.
    fn believe(
        &mut self,
        path: PathBuf,
        kind: Kind,
        pid: u32,
        mapped: Option<Inode>,
    ) -> Option<Found> {
        // What lies in a folder that was named is as good as named.
        if self.paths.folders.iter().any(|folder| path.starts_with(folder)) {
            return Some((path, None));
        }
        match self.files.trust(&path, pid, mapped) {
            Ok(owner) => Some((path, owner)),
            Err(Untrusted { user }) => {
                // The folder of the recording may be the recorded one, by another name.
                if self.strange.insert(std::path::absolute(&path).unwrap_or(path.clone())) {
                    self.warn(Warning::Untrusted { path, kind, pid, user });
                }
                None
            }
        }
    }

    /// Where a file of `pid` may lie that it calls `inside`, and that we would look for at `here`. A
    /// process in a container sees other files than we do, and while it runs they can be reached.
    fn of_living(&self, pid: u32, inside: &Path, here: &Path) -> Vec<PathBuf> {
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        match inside.strip_prefix("/").map(|inside| root.join(inside)) {
            Ok(inside) if self.paths.recorded_here && self.files.same_file(&inside, here) => {
                vec![here.to_owned()]
            }
            Ok(inside) if self.paths.recorded_here => vec![inside, here.to_owned()],
            _ => vec![here.to_owned()],
        }
    }

    /// Jitdumps in the folders without a marker in the recording: those whose header or name says
    /// a process that has none.
    fn unmarked_jitdumps(&mut self) {
        for (pid, path) in self.folders.jitdumps() {
            if self.taken.contains(&path) {
                continue;
            }
            let space = [Some(pid), pid_in_name(&path)]
                .into_iter()
                .flatten()
                .find_map(|pid| self.index.processes.at(pid, u64::MAX));
            if let Some(space) = space.filter(|space| !self.spaces_with_dump.contains(space))
                && let pid = self.index.processes.pid(space)
                && let Some(found) = self.believe(path, Kind::Jitdump, pid, None)
            {
                self.add(Kind::Jitdump, found, space, None);
            }
        }
    }

    fn perf_maps(&mut self) {
        let mut named: BTreeMap<u32, Vec<Found>> = BTreeMap::new();
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
            // The last program that ran under this pid is the one that the file is of.
            let Some(space) = self.index.processes.at(pid, u64::MAX) else { continue };
            let name = format!("perf-{pid}.map");
            let found = named.remove(&pid).unwrap_or_else(|| {
                let inside = format!("/tmp/perf-{}.map", inner_pid(pid));
                let places = self.of_living(pid, inside.as_ref(), &Path::new("/tmp").join(&name));
                let folders: Vec<PathBuf> =
                    self.folders.named(OsStr::new(&name)).map(Path::to_owned).collect();
                let mut there =
                    folders.into_iter().chain(places).filter(|path| self.files.is_file(path));
                let found = there.find_map(|path| self.believe(path, Kind::PerfMap, pid, None));
                found.into_iter().collect()
            });
            for one in found {
                self.add(Kind::PerfMap, one, space, None);
            }
        }
    }

    /// The one process that has a name, if there is no other.
    fn only_process(&self) -> Option<u32> {
        let mut pids = self.index.processes.pids().filter(|&pid| pid != 0);
        let only = pids.next()?;
        pids.next().is_none().then_some(only)
    }

    fn add(
        &mut self,
        kind: Kind,
        (path, owner): Found,
        space: AddressSpaceId,
        marker: Option<u64>,
    ) {
        if kind == Kind::Jitdump {
            self.spaces_with_dump.insert(space);
        }
        self.taken.insert(path.clone());
        let pid = self.index.processes.pid(space);
        let known_to_perf =
            kind == Kind::PerfMap && path == Path::new(&format!("/tmp/perf-{pid}.map"));
        self.found.sources.push(Source { kind, path, space, marker, known_to_perf, owner });
    }

    fn warn(&mut self, warning: Warning) {
        self.found.warnings.push(warning);
    }
}

/// How many folders and names at their ends two paths have in common.
fn common_end(one: &Path, other: &Path) -> usize {
    let pairs = one.components().rev().zip(other.components().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Whether a mapped file could be a jitdump under another name. Libraries are not opened.
fn worth_a_look(name: &[u8]) -> bool {
    let base = base_name(name);
    name.starts_with(b"/")
        && !base.ends_with(b".so")
        && !base.windows(4).any(|part| part == b".so.")
        && !name.starts_with(b"/dev/")
}

/// The files in the folders that were named, and beside the recording.
fn search_folders(paths: &SearchPaths, files: &dyn SourceFiles) -> Index {
    let mut folders = Index::default();
    for folder in &paths.folders {
        folders.add_all(folder, files);
    }
    if let Some(beside) = &paths.beside {
        let wanted = |name: &[u8]| {
            looks_like_marker(name) || name.starts_with(b"perf-") && name.ends_with(b".map")
        };
        folders.add_some(beside, &wanted, files);
    }
    folders
}

/// What a process calls itself: its pid in the innermost namespace, if it still lives.
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
