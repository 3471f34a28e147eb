//! Finds the jitdumps and perf maps that belong to a recording.
//!
//! A jitdump makes itself known by its **marker**: the process maps the file executable, for no
//! other purpose than that perf sees it. A perf map is known by its name alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use code_timeline::LifeId;

use crate::files::{
    Index, Kind, Named, base_name, is_file, jitdump_pid, looks_like_marker, pid_in_name, same_file,
};

use super::interner::NameId;
use super::survey::Survey;

/// A file that tells of a process's code.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is.
    pub kind: Kind,
    /// Where it lies now.
    pub path: PathBuf,
    /// Whose code it tells of.
    pub life: LifeId,
    /// When perf saw its marker; 0 for one that was mapped before the recording began.
    pub marker: Option<u64>,
    /// Whether perf would find a perf map here by itself.
    pub known_to_perf: bool,
}

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Jitdumps that the user named.
    pub jitdumps: Vec<Named>,
    /// Perf maps that the user named.
    pub perf_maps: Vec<Named>,
    /// Folders with files that moved here from another machine.
    pub folders: Vec<PathBuf>,
    /// The folder of the recording.
    pub beside: Option<PathBuf>,
    /// Whether the recording was made on this machine: else `/tmp` and `/proc` hold other
    /// processes' files.
    pub recorded_here: bool,
}

/// What was found, and what was not.
#[derive(Debug, Default)]
pub struct Located {
    /// The sources.
    pub sources: Vec<Source>,
    /// What the user must know: files that are missing or belong to no one.
    pub warnings: Vec<String>,
    /// Whether the recording has any marker.
    pub markers: usize,
}

/// Finds the sources of a recording.
pub fn locate(survey: &Survey, places: &Places) -> Located {
    let mut search = Search {
        survey,
        found: Located::default(),
        folders: index(places),
        taken: BTreeSet::new(),
        lives_with_dump: BTreeSet::new(),
        recorded_here: places.recorded_here,
    };
    search.named_jitdumps(places);
    search.markers();
    search.unmarked_jitdumps();
    search.perf_maps(places);
    search.found
}

struct Search<'s> {
    survey: &'s Survey,
    found: Located,
    folders: Index,
    /// Files that are a source already.
    taken: BTreeSet<PathBuf>,
    lives_with_dump: BTreeSet<LifeId>,
    recorded_here: bool,
}

impl Search<'_> {
    fn named_jitdumps(&mut self, places: &Places) {
        for Named { pid, path } in &places.jitdumps {
            let Some(header) = jitdump_pid(path) else {
                let why = "is no jitdump that can be read";
                self.warn(format!("{}: {why}; it is left out", path.display()));
                continue;
            };
            let marker = self.marker_named_like(path, *pid);
            let life = match (marker, *pid) {
                (Some((life, _)), _) => Some(life),
                (None, Some(pid)) => self.survey.processes.at(pid, u64::MAX),
                (None, None) => [Some(header), pid_in_name(path)]
                    .into_iter()
                    .flatten()
                    .find_map(|pid| self.survey.processes.at(pid, u64::MAX)),
            };
            match life {
                Some(life) => {
                    self.add(Kind::Jitdump, path.clone(), life, marker.map(|(_, time)| time));
                }
                None => {
                    let pid = pid.unwrap_or(header);
                    self.warn(format!(
                        "{path}: the recording has no process {pid}; say whose code it is by \
                         --jitdump PID={path}",
                        path = path.display()
                    ));
                }
            }
        }
    }

    /// The life whose marker mapping has the same file name as `path`.
    fn marker_named_like(&self, path: &Path, pid: Option<u32>) -> Option<(LifeId, u64)> {
        let name = path.file_name()?.as_bytes();
        let survey = self.survey;
        let mut marked = survey.maps.iter().filter(|map| {
            base_name(survey.name(map)) == name
                && pid.is_none_or(|pid| survey.processes.pid(map.life) == pid)
        });
        marked.next().map(|map| (map.life, map.time))
    }

    /// Follows every marker mapping to its file.
    fn markers(&mut self) {
        let survey = self.survey;
        let is_marker: Vec<bool> = survey.names.iter().map(looks_like_marker).collect();
        let mut asked: HashMap<NameId, bool> = HashMap::new();
        let mut seen: BTreeSet<(LifeId, usize)> = BTreeSet::new();
        // Where the user said which dump it is, there is none to look for.
        let said = self.lives_with_dump.clone();
        for map in survey.maps.iter().filter(|map| !map.anonymous) {
            let name = survey.name(map);
            let by_name = is_marker[map.name.index()];
            // Any mapped file may be one, whatever its name: its header says.
            let marked = by_name
                || *asked.entry(map.name).or_insert_with(|| {
                    worth_a_look(name) && jitdump_pid(Path::new(OsStr::from_bytes(name))).is_some()
                });
            if !marked || !seen.insert((map.life, map.name.index())) {
                continue;
            }
            self.found.markers += 1;
            if said.contains(&map.life) {
                let mut of_life =
                    self.found.sources.iter_mut().filter(|source| source.life == map.life);
                if let Some(source) = of_life.find(|source| source.marker.is_none()) {
                    source.marker = Some(map.time);
                }
                continue;
            }
            let pid = survey.processes.pid(map.life);
            let recorded = Path::new(OsStr::from_bytes(name));
            match self.find_dump(recorded, pid) {
                Some(path) => self.add(Kind::Jitdump, path, map.life, Some(map.time)),
                None => self.warn(format!(
                    "{}: the jitdump of {} (pid {pid}) is not there; say where it is now by \
                     --jitdump FILE or --aux-dir DIR",
                    recorded.display(),
                    survey.comm(pid)
                )),
            }
        }
    }

    /// Where the jitdump with this recorded path is now.
    fn find_dump(&self, recorded: &Path, pid: u32) -> Option<PathBuf> {
        let name = recorded.file_name()?;
        self.folders
            .named(name)
            .map(Path::to_owned)
            .chain(self.of_living(pid, recorded, recorded))
            .find(|path| jitdump_pid(path).is_some())
            .or_else(|| self.folders.jitdump_of(pid))
    }

    /// Where a file of `pid` may lie that it calls `inside`, and that we would look for at `here`. A
    /// process in a container sees other files than we do, and while it runs they can be reached.
    fn of_living(&self, pid: u32, inside: &Path, here: &Path) -> Vec<PathBuf> {
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        match inside.strip_prefix("/").map(|inside| root.join(inside)) {
            Ok(inside) if self.recorded_here && same_file(&inside, here) => vec![here.to_owned()],
            Ok(inside) if self.recorded_here => vec![inside, here.to_owned()],
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
            let life = [Some(pid), pid_in_name(&path)]
                .into_iter()
                .flatten()
                .find_map(|pid| self.survey.processes.at(pid, u64::MAX));
            if let Some(life) = life.filter(|life| !self.lives_with_dump.contains(life)) {
                self.add(Kind::Jitdump, path, life, None);
            }
        }
    }

    fn perf_maps(&mut self, places: &Places) {
        let mut named: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        for Named { pid, path } in &places.perf_maps {
            let whose = pid.or_else(|| pid_in_name(path)).or_else(|| self.only_process());
            match whose.filter(|&pid| self.survey.processes.at(pid, u64::MAX).is_some()) {
                Some(pid) => named.entry(pid).or_default().push(path.clone()),
                None => self.warn(format!(
                    "{path}: no process of the recording is named by it; say whose code it is by \
                     --perf-map PID={path}",
                    path = path.display()
                )),
            }
        }
        let pids: Vec<u32> = self.survey.processes.pids().collect();
        for pid in pids {
            // The last program that ran under this pid is the one that the file is of.
            let Some(life) = self.survey.processes.at(pid, u64::MAX) else { continue };
            let name = format!("perf-{pid}.map");
            let paths = named.remove(&pid).unwrap_or_else(|| {
                let inside = format!("/tmp/perf-{}.map", inner_pid(pid));
                let places = self.of_living(pid, inside.as_ref(), &Path::new("/tmp").join(&name));
                let folders = self.folders.named(OsStr::new(&name)).map(Path::to_owned);
                folders.chain(places).find(|path| is_file(path)).into_iter().collect()
            });
            for path in paths {
                self.add(Kind::PerfMap, path, life, None);
            }
        }
    }

    /// The one process that has a name, if there is no other.
    fn only_process(&self) -> Option<u32> {
        let mut pids = self.survey.processes.pids().filter(|&pid| pid != 0);
        let only = pids.next()?;
        pids.next().is_none().then_some(only)
    }

    fn add(&mut self, kind: Kind, path: PathBuf, life: LifeId, marker: Option<u64>) {
        if kind == Kind::Jitdump {
            self.lives_with_dump.insert(life);
        }
        self.taken.insert(path.clone());
        let pid = self.survey.processes.pid(life);
        let known_to_perf =
            kind == Kind::PerfMap && path == Path::new(&format!("/tmp/perf-{pid}.map"));
        self.found.sources.push(Source { kind, path, life, marker, known_to_perf });
    }

    fn warn(&mut self, what: String) {
        self.found.warnings.push(what);
    }
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
fn index(places: &Places) -> Index {
    let mut index = Index::default();
    for folder in &places.folders {
        index.add_all(folder);
    }
    if let Some(beside) = &places.beside {
        index.add_some(beside, &|name| {
            looks_like_marker(name) || name.starts_with(b"perf-") && name.ends_with(b".map")
        });
    }
    index
}

/// What a process calls itself: its pid in the innermost namespace, if it still lives.
fn inner_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NStgid:"));
    line.and_then(|pids| pids.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}
