//! Where the symbols and debug info of a stripped file are.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jitdump::ReadAt;
use printable::Hexadecimal;

use crate::checksum;
use crate::elf::Elf;

/// The folder in which distributions install debug info.
const INSTALLED: &str = "/usr/lib/debug";

/// How to search for separate debug files.
pub struct DebugFiles<'o, File> {
    /// Opens a file at a path that a program or library may have chosen.
    pub open: &'o dyn Fn(&Path) -> io::Result<File>,
    /// Whether to ask the servers in `DEBUGINFOD_URLS` for what is not on this machine.
    pub ask_servers: bool,
}

impl<File> fmt::Debug for DebugFiles<'_, File> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugFiles").field("ask_servers", &self.ask_servers).finish_non_exhaustive()
    }
}

impl<File: ReadAt> DebugFiles<'_, File> {
    /// The file with the symbols and debug info of `elf`, which was mapped from `path`, and where it is. `None` if there is none: it must have the same
    /// build-id, or, if `elf` has none, the checksum that `elf` names.
    pub fn find(&self, elf: &Elf<File>, path: &[u8]) -> Option<(PathBuf, Elf<File>)> {
        let build_id = elf.build_id();
        let with_id = |path: PathBuf| {
            let found = self.read(&path)?;
            let is_of = found.build_id() == build_id && is_useful(&found);
            is_of.then_some((path, found))
        };
        let by_id = build_id.and_then(|id| places_of(id).find_map(with_id));
        by_id
            .or_else(|| {
                let (link, sum) = elf.debug_link()?;
                links(path, &link).into_iter().find_map(|path| match build_id {
                    Some(_) => with_id(path),
                    None => self.with_sum(path, sum),
                })
            })
            .or_else(|| with_id(self.fetched(build_id?)?))
    }

    /// The debug info that `elf`, which is at `path`, shares with other files; `dwz` writes it. `None` if there is none with the right build-id.
    pub fn shared(&self, elf: &Elf<File>, path: &Path) -> Option<Elf<File>> {
        let (link, build_id) = elf.alternate_link()?;
        let with_id =
            |path: PathBuf| self.read(&path).filter(|found| found.build_id() == Some(&*build_id));
        let link = Path::new(OsStr::from_bytes(&link));
        // Of two paths joined, the second one alone is left if it is absolute.
        let named = path.parent().map(|folder| folder.join(link));
        named
            .into_iter()
            .chain(installed_debug_file(&build_id))
            .find_map(with_id)
            .or_else(|| with_id(self.fetched(&build_id)?))
    }

    fn read(&self, path: &Path) -> Option<Elf<File>> {
        Elf::read((self.open)(path).ok()?).ok()
    }

    fn with_sum(&self, path: PathBuf, sum: u32) -> Option<(PathBuf, Elf<File>)> {
        let found =
            self.read(&path).filter(|found| found.build_id().is_none() && is_useful(found))?;
        (checksum::of_file(found.file()).ok()? == sum).then_some((path, found))
    }

    /// The file from the servers, by elfutils' own program, which has a cache and time limits.
    fn fetched(&self, build_id: &[u8]) -> Option<PathBuf> {
        let urls = env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty());
        urls.filter(|_| self.ask_servers)?;
        let mut command = Command::new("debuginfod-find");
        let command = command.args(["debuginfo", &Hexadecimal(build_id).to_string()]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = output.ok().filter(|output| output.status.success())?;
        let path = output.stdout.trim_ascii_end();
        (!path.is_empty()).then(|| PathBuf::from(OsString::from_vec(path.to_vec())))
    }
}

fn is_useful(found: &Elf<impl ReadAt>) -> bool {
    found.has_symbols() || found.has_lines()
}

/// Where distributions install the symbols of a file with this build-id.
#[must_use]
pub fn installed_debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let text = Hexadecimal(build_id).to_string();
    let (folder, rest) = text.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some(Path::new(INSTALLED).join(".build-id").join(folder).join(format!("{rest}.debug")))
}

/// Where a file with this build-id may be.
fn places_of(build_id: &[u8]) -> impl Iterator<Item = PathBuf> + use<> {
    let text = Hexadecimal(build_id).to_string();
    let (folder, rest) = text.split_at_checked(2).unwrap_or(("", &text));
    // perf's own cache.
    let cached = env::var_os("HOME").map(|home| {
        let cache = Path::new(&home).join(".debug/.build-id").join(folder).join(rest);
        [cache.join("debug"), cache.join("elf")]
    });
    installed_debug_file(build_id).into_iter().chain(cached.into_iter().flatten())
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
        let places: Vec<PathBuf> = places_of(&[0xab, 0x12]).collect();
        assert_eq!(places[0], Path::new("/usr/lib/debug/.build-id/ab/12.debug"));
        for short in [&[][..], &[0xab]] {
            assert_eq!(installed_debug_file(short), None);
            assert!(!places_of(short).any(|path| path.starts_with(INSTALLED)));
        }
    }
}
