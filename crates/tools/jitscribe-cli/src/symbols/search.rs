//! Finds the jitdumps and perf maps of a process by its id.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jitscribe_inject::Warning;
use jitscribe_inject::files::Untrusted;

use super::source_args::SourceArgs;
use crate::files::{
    Believed, Index, Kind, Named, facts, is_file, jitdump_pid, looks_like_dump, open_owned_by,
    pid_in_name,
};

/// A file to read.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path.
    pub path: PathBuf,
    /// Its format.
    pub kind: Kind,
    /// Whether the user named it.
    pub named: bool,
    /// The owner that the file must have when it is opened; `None` for any.
    pub owner: Option<u32>,
}

/// Finds the files, perf maps first. Files that are not trusted are skipped and reported in `warnings`.
pub fn search(
    args: &SourceArgs,
    pid: Option<u32>,
    beside: &Path,
    warnings: &mut Vec<String>,
) -> Vec<SourceFile> {
    let folder = match beside.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let believed = Believed::about(Some(beside), &BTreeMap::new(), true, &args.aux_dir);
    let mut given = Index::default();
    for folder in &args.aux_dir {
        given.add_all(folder, &believed);
    }
    let is_earlier = |path: &Path, kind: Kind, owner: Option<u32>| {
        let begin = args.begin.filter(|_| kind == Kind::PerfMap);
        // What cannot be opened is reported when it is read.
        begin.is_some_and(|it| open_owned_by(owner, path).is_ok_and(|file| it.is_behind(&file)))
    };
    let mut believe = |path: PathBuf, kind: Kind, pid: u32| match believed.owner(&path, pid, None) {
        Ok(owner) if is_earlier(&path, kind, owner) => {
            warnings.push(Warning::OfEarlierProcess { path, pid }.into());
            None
        }
        Ok(owner) => Some(SourceFile { path, kind, named: false, owner }),
        Err(Untrusted { user }) => {
            warnings.push(Warning::Untrusted { path, kind, pid, user }.into());
            None
        }
    };
    let mut found = named(&args.perf_map, Kind::PerfMap, pid).unwrap_or_else(|| {
        let maps = pid.into_iter().flat_map(|pid| perf_maps(&given, pid, folder));
        maps.filter_map(|path| believe(path, Kind::PerfMap, pid?)).take(1).collect()
    });
    found.extend(named(&args.jitdump, Kind::Jitdump, pid).unwrap_or_else(|| {
        let dumps = pid.into_iter().flat_map(|pid| jitdumps(&given, pid, folder, &believed));
        dumps.filter_map(|path| believe(path, Kind::Jitdump, pid?)).take(1).collect()
    }));
    found
}

/// The named files that belong to this process or to no particular process; `None` if there are none.
fn named(files: &[Named], kind: Kind, pid: Option<u32>) -> Option<Vec<SourceFile>> {
    let of_pid = |named: &&Named| named.pid.is_none() || pid.is_none() || named.pid == pid;
    let found =
        |named: &Named| SourceFile { path: named.path.clone(), kind, named: true, owner: None };
    let files: Vec<SourceFile> = files.iter().filter(of_pid).map(found).collect();
    (!files.is_empty()).then_some(files)
}

/// The perf maps of a process, in the order of preference.
fn perf_maps(given: &Index, pid: u32, beside: &Path) -> impl Iterator<Item = PathBuf> {
    let name = format!("perf-{pid}.map");
    let given: Vec<PathBuf> = given.named(OsStr::new(&name)).map(Path::to_owned).collect();
    let usual = [Some(beside.to_owned()), variable("JITSCRIBE_DIR"), Some("/tmp".into())];
    let usual = usual.into_iter().flatten().map(move |folder| folder.join(&name));
    given.into_iter().chain(usual).filter(|path| is_file(path))
}

/// The jitdumps of a process, in the order of preference.
fn jitdumps(
    given: &Index,
    pid: u32,
    beside: &Path,
    believed: &Believed,
) -> impl Iterator<Item = PathBuf> {
    let by_name = format!("jit-{pid}.dump");
    let is_dump = |path: &&Path| jitdump_pid(path).is_some();
    let by_name = given.named(OsStr::new(&by_name)).find(is_dump).map(Path::to_owned);
    let given = by_name.or_else(|| given.jitdump_of(pid));
    let of_pid = move |name: &[u8]| {
        looks_like_dump(name)
            && std::str::from_utf8(name).is_ok_and(|name| pid_in_name(name.as_ref()) == Some(pid))
    };
    // LLVM and perf's Java agent create a subfolder for each process here.
    let within = |base: &str| variable(base).map(|base| base.join(".debug/jit"));
    let cache = variable("XDG_RUNTIME_DIR").or_else(|| Some(variable("HOME")?.join(".cache")));
    let usual = [
        (Some(beside.to_owned()), false),
        (variable("JITSCRIBE_DIR"), false),
        (within("JITDUMPDIR"), true),
        (within("HOME"), true),
        (cache.map(|folder| folder.join("jitscribe")), false),
        (Some(".".into()), false),
        (Some("/tmp".into()), false),
    ];
    let usual = usual.into_iter().flat_map(move |(folder, deep)| {
        let mut index = Index::default();
        match folder {
            Some(folder) if deep => index.add_some_within(&folder, &of_pid, believed),
            Some(folder) => index.add_some(&folder, &of_pid, believed),
            None => {}
        }
        let mut dumps: Vec<PathBuf> = index.jitdumps().into_iter().map(|(_, path)| path).collect();
        // Process ids are reused: of several dumps, the newest is the right one.
        dumps.sort_by_cached_key(|path| facts(path).ok().map(|facts| facts.modified));
        dumps.reverse();
        dumps
    });
    given.into_iter().chain(usual)
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
