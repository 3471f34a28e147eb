//! Finds the jitdumps and perf maps of a process by its id.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::SourceArgs;
use crate::files::{Index, Kind, Named, is_file, jitdump_pid, looks_like_marker, pid_in_name};

/// A file to read.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Whether the user named it.
    pub named: bool,
}

/// Finds the files, perf maps first.
pub fn search(args: &SourceArgs, pid: Option<u32>, beside: &Path) -> Vec<Found> {
    let folder = match beside.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut given = Index::default();
    for folder in &args.aux_dir {
        given.add_all(folder);
    }
    let maps = named(&args.perf_map, pid)
        .or_else(|| Some(vec![perf_map(&given, pid?, folder)?]))
        .unwrap_or_default();
    let dumps = named(&args.jitdump, pid)
        .or_else(|| Some(vec![jitdump(&given, pid?, folder)?]))
        .unwrap_or_default();
    let of = |kind, named: bool| move |path| Found { path, kind, named };
    let maps = maps.into_iter().map(of(Kind::PerfMap, !args.perf_map.is_empty()));
    maps.chain(dumps.into_iter().map(of(Kind::Jitdump, !args.jitdump.is_empty()))).collect()
}

/// The named files that are this process's, or no process's in particular; `None` if there is none.
fn named(files: &[Named], pid: Option<u32>) -> Option<Vec<PathBuf>> {
    let of_pid = |named: &&Named| named.pid.is_none() || pid.is_none() || named.pid == pid;
    let files: Vec<PathBuf> = files.iter().filter(of_pid).map(|named| named.path.clone()).collect();
    (!files.is_empty()).then_some(files)
}

fn perf_map(given: &Index, pid: u32, beside: &Path) -> Option<PathBuf> {
    let name = format!("perf-{pid}.map");
    let usual = [Some(beside.to_owned()), variable("JITSCRIBE_DIR"), Some("/tmp".into())];
    let usual = usual.into_iter().flatten().map(|folder| folder.join(&name));
    given.named(OsStr::new(&name)).map(Path::to_owned).chain(usual).find(|path| is_file(path))
}

fn jitdump(given: &Index, pid: u32, beside: &Path) -> Option<PathBuf> {
    let by_name = format!("jit-{pid}.dump");
    let is_dump = |path: &&Path| jitdump_pid(path).is_some();
    if let Some(path) = given.named(OsStr::new(&by_name)).find(is_dump) {
        return Some(path.to_owned());
    }
    if let Some(path) = given.jitdump_of(pid) {
        return Some(path);
    }
    let of_pid = |name: &[u8]| {
        looks_like_marker(name)
            && std::str::from_utf8(name).is_ok_and(|name| pid_in_name(name.as_ref()) == Some(pid))
    };
    // Folders that hold one process's dump each: LLVM's, and that of perf's agent for Java.
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
    usual.into_iter().find_map(|(folder, deep)| {
        let mut index = Index::default();
        if deep {
            index.add_some_within(&folder?, &of_pid);
        } else {
            index.add_some(&folder?, &of_pid);
        }
        // Process ids come again: of several dumps the youngest is the one.
        let dumps = index.jitdumps().into_iter().map(|(_, path)| path);
        dumps.max_by_key(|path| modified(path))
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
