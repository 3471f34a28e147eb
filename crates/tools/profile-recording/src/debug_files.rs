//! Where the symbols and debug info of a stripped file are.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jitscribe_inject::files::SourceFiles;

use crate::elf::Elf;

/// The folder in which distributions install debug info.
const INSTALLED: &str = "/usr/lib/debug";

/// The file with the symbols of `elf`, which was mapped from `path`; `None` if there is none, or it has another build-id.
pub fn find(elf: &Elf, path: &[u8], files: &dyn SourceFiles) -> Option<Elf> {
    let open = |path: &Path| {
        let debug = Elf::read(files.open(path, None).ok()?).ok()?;
        let is_of = debug.build_id == elf.build_id && (debug.has_symbols() || debug.has_lines());
        is_of.then_some(debug)
    };
    let build_id = elf.build_id.as_deref().map(hexadecimal);
    let by_id = build_id.as_deref().and_then(|id| places_of(id).find_map(|path| open(&path)));
    by_id
        .or_else(|| {
            let link = elf.debug_link.as_deref()?;
            links(path, link).iter().find_map(|path| open(path))
        })
        .or_else(|| open(&fetched(build_id.as_deref()?)?))
}

/// Where a file with this build-id may be.
fn places_of(id: &str) -> impl Iterator<Item = PathBuf> {
    let (folder, rest) = id.split_at_checked(2).unwrap_or(("", id));
    let installed = Path::new(INSTALLED).join(".build-id").join(folder);
    let installed =
        (!folder.is_empty() && !rest.is_empty()).then(|| installed.join(format!("{rest}.debug")));
    // perf's own cache.
    let cached = env::var_os("HOME").map(|home| {
        let cache = Path::new(&home).join(".debug/.build-id").join(folder).join(rest);
        [cache.join("debug"), cache.join("elf")]
    });
    installed.into_iter().chain(cached.into_iter().flatten())
}

/// Where the file is that `.gnu_debuglink` names: see gdb's manual, "Debugging Information in Separate Files".
fn links(path: &[u8], link: &[u8]) -> Vec<PathBuf> {
    let link = OsStr::from_bytes(link);
    let Some(folder) = Path::new(OsStr::from_bytes(path)).parent() else { return Vec::new() };
    let is_name = Path::new(link).file_name() == Some(link);
    let below = folder.strip_prefix("/").unwrap_or(folder);
    match is_name {
        true => vec![
            folder.join(link),
            folder.join(".debug").join(link),
            Path::new(INSTALLED).join(below).join(link),
        ],
        false => Vec::new(),
    }
}

/// The file from the servers in `DEBUGINFOD_URLS`, by elfutils' own program, which has a cache and time limits.
fn fetched(id: &str) -> Option<PathBuf> {
    env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
    let mut command = Command::new("debuginfod-find");
    let command = command.args(["debuginfo", id]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let path = output.stdout.trim_ascii_end();
    (!path.is_empty()).then(|| PathBuf::from(OsString::from_vec(path.to_vec())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_name_and_no_path() {
        assert_eq!(
            links(b"/usr/bin/app", b"app.debug"),
            ["/usr/bin/app.debug", "/usr/bin/.debug/app.debug", "/usr/lib/debug/usr/bin/app.debug"]
                .map(PathBuf::from)
        );
        for link in ["../../etc/passwd", "/etc/passwd", "..", ""] {
            assert!(links(b"/usr/bin/app", link.as_bytes()).is_empty(), "{link}");
        }
    }

    #[test]
    fn build_ids_lead_to_files() {
        let places: Vec<PathBuf> = places_of("ab12").collect();
        assert_eq!(places[0], Path::new("/usr/lib/debug/.build-id/ab/12.debug"));
        assert!(!places_of("").any(|path| path.starts_with(INSTALLED)));
    }
}
