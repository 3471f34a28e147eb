//! The files in which the process of a core file described its code: the jitdumps that it had mapped, and its perf map.
//!
//! A core file has the paths of mapped files, but nothing by which to recognize the files. Since then, a process with the same id may
//! have written files of the same names. So the owner and the time of a file are checked, and what can be checked of its content.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::files::content::{self, Content};
use crate::files::{Believed, Facts, FoundSource, Kind, facts, jitdump_pid, looks_like_marker};
use crate::process::{self, Core};
use crate::text;

/// The most jitdumps of a process.
const DUMPS: usize = 4;

/// An upper bound for the rounding of file times.
const ROUNDED: Duration = Duration::from_millis(500);

/// What was found.
#[derive(Debug, Default)]
pub struct CoreSources {
    /// Jitdumps, and then perf maps.
    pub found: Vec<FoundSource>,
    /// The files that were looked for and are not used, and why.
    pub unused: Vec<(PathBuf, Unused)>,
}

/// Why a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// There is none, or it cannot be seen.
    Missing,
    /// It belongs to this user, who is none of those whose files are trusted for the process.
    Untrusted(u32),
    /// It was changed after the process had ended.
    Later,
    /// Its header names another process.
    OtherProcess,
    /// None of its code is at an address that was executable.
    OtherAddresses,
    /// It has no code.
    Empty,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("not there"),
            Self::Untrusted(user) => write!(f, "belongs to uid {user}"),
            Self::Later => f.write_str("changed after the core file was written"),
            Self::OtherProcess => f.write_str("of another process"),
            Self::OtherAddresses => {
                f.write_str("its code is not in executable memory of the core file")
            }
            Self::Empty => f.write_str("has no code"),
        }
    }
}

impl CoreSources {
    /// The files that are not used, for a message; `None` if there are none.
    pub fn unused_text(&self) -> Option<String> {
        let texts = self.unused.iter().map(|(path, why)| format!("{} ({why})", text::path(path)));
        Some(texts.collect::<Vec<_>>().join(", ")).filter(|texts| !texts.is_empty())
    }

    /// Searches for files of these kinds.
    pub fn of(core: &Core, kinds: &[Kind]) -> Self {
        let mut this = Self::default();
        let Some(pid) = core.notes().pid else { return this };
        let search = Search::new(core, pid);
        let own = std::path::absolute(core.path()).unwrap_or_else(|_| core.path().to_owned());
        let beside = own.parent().unwrap_or(Path::new(""));
        if kinds.contains(&Kind::Jitdump) {
            let mut mapped: Vec<PathBuf> = Vec::new();
            for file in &core.notes().files {
                let path = file.path.strip_suffix(b" (deleted)").unwrap_or(&file.path);
                let path = PathBuf::from(OsStr::from_bytes(path));
                if looks_like_marker(path.as_os_str().as_bytes()) && !mapped.contains(&path) {
                    mapped.push(path);
                }
                if mapped.len() == DUMPS {
                    break;
                }
            }
            for path in mapped {
                let beside = path.file_name().map(|name| beside.join(name));
                this.add_first(&search, Kind::Jitdump, path, beside);
            }
        }
        if kinds.contains(&Kind::PerfMap) {
            let name = format!("perf-{pid}.map");
            this.add_first(
                &search,
                Kind::PerfMap,
                Path::new("/tmp").join(&name),
                Some(beside.join(name)),
            );
        }
        this
    }

    /// Adds a file from where the process wrote it, or else from beside the core file.
    fn add_first(
        &mut self,
        search: &Search<'_>,
        kind: Kind,
        path: PathBuf,
        beside: Option<PathBuf>,
    ) {
        let beside = beside.filter(|beside| *beside != path);
        let mut unused = Vec::new();
        for (path, is_original) in [(Some(path), true), (beside, false)] {
            let Some(path) = path else { continue };
            match search.check(kind, &path, is_original) {
                Ok(owner) => return self.found.push(FoundSource { path, kind, owner }),
                Err(why) => unused.push((path, why)),
            }
        }
        // A copy is mentioned only if there is one.
        let is_worth =
            |(at, (_, why)): &(usize, (PathBuf, Unused))| *at == 0 || *why != Unused::Missing;
        self.unused.extend(unused.into_iter().enumerate().filter(is_worth).map(|(_, file)| file));
    }
}

/// Why a file that the user named may not be of the process of a core file; `None` if nothing speaks against it.
pub fn doubt(core: &Core, file: &FoundSource) -> Option<Unused> {
    match file.kind {
        Kind::Jitdump => {
            let is_other =
                core.notes().pid.zip(jitdump_pid(&file.path)).is_some_and(|(own, its)| own != its);
            is_other.then_some(Unused::OtherProcess)
        }
        Kind::PerfMap => check_map(core, file).err(),
    }
}

/// Address spaces are random, so a map of another process has other addresses.
fn check_map(core: &Core, file: &FoundSource) -> Result<(), Unused> {
    let opened = file.open().map_err(|_| Unused::Missing)?;
    let content = content::text(&opened, content::LARGEST_MAP).map_err(|_| Unused::Missing)?;
    let Content { bytes, .. } = content;
    let mut addresses = perf_map::entries(&bytes).flatten().map(|entry| entry.address).peekable();
    if addresses.peek().is_none() {
        return Err(Unused::Empty);
    }
    let is_here = addresses.any(|address| core.is_executable(address));
    if is_here { Ok(()) } else { Err(Unused::OtherAddresses) }
}

/// What a file must be like.
struct Search<'c> {
    core: &'c Core,
    pid: u32,
    believed: Believed,
    /// When the process had ended; `None` if it still runs, or if this is not known.
    until: Option<SystemTime>,
}

impl<'c> Search<'c> {
    fn new(core: &'c Core, pid: u32) -> Self {
        let users = core.notes().user.map(|user| (pid, user));
        let believed = Believed::about(Some(core.path()), &BTreeMap::from_iter(users), false, &[]);
        let written = core.path().metadata().and_then(|it| it.modified()).ok();
        // A process of which a debugger wrote the core file still runs.
        let is_running =
            process::began(pid).zip(written).is_some_and(|(began, written)| began <= written);
        let until =
            written.and_then(|written| written.checked_add(ROUNDED)).filter(|_| !is_running);
        Self { core, pid, believed, until }
    }

    /// Checks a file. Returns the owner that it must have when it is opened.
    fn check(&self, kind: Kind, path: &Path, is_original: bool) -> Result<Option<u32>, Unused> {
        let facts = facts(path).map_err(|_| Unused::Missing)?;
        let owner = self.believed.owner(path, self.pid, None);
        let owner = owner.map_err(|untrusted| Unused::Untrusted(untrusted.user))?;
        // A copy may have the time of the copying.
        if is_original
            && self.until.is_some_and(|until| modified(&facts).is_none_or(|at| at > until))
        {
            return Err(Unused::Later);
        }
        let file = FoundSource { path: path.to_owned(), kind, owner };
        match kind {
            Kind::Jitdump if jitdump_pid(path) != Some(self.pid) => Err(Unused::OtherProcess),
            Kind::Jitdump => Ok(owner),
            Kind::PerfMap => check_map(self.core, &file).map(|()| owner),
        }
    }
}

fn modified(facts: &Facts) -> Option<SystemTime> {
    let (seconds, nanoseconds) = facts.modified;
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since.checked_add(Duration::from_nanos(nanoseconds))?)
}
