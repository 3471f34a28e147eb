//! The library for `LD_PRELOAD`: where it is, how a command loads it, and for which commands it has no effect.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::text::shell_word;
use crate::{Error, Result, companion, note, search_path, text};

/// The file name of the library.
const FILE: &str = "libjitscribe_preload.so";
/// The environment variable that overrides the path of the library.
const ELSEWHERE: &str = "JITSCRIBE_PRELOAD";
/// The environment variable through which the dynamic linker loads the library.
pub const VARIABLE: &str = "LD_PRELOAD";

/// The path of the library: from [`ELSEWHERE`] if it is set, else among the libraries installed with this command.
pub fn library() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(ELSEWHERE).map(PathBuf::from) {
        return if path.is_file() {
            usable(path)
        } else {
            Err(Error::Refused(format!("{ELSEWHERE}: {}: no such file", text::path(&path))))
        };
    }
    let found = companion::library(FILE).ok_or_else(|| {
        Error::Refused(format!(
            "{FILE} is neither beside {} nor in ../lib; build it (cargo build --release -p \
             jitscribe-preload) or set {ELSEWHERE}=PATH",
            text::path(&companion::own())
        ))
    })?;
    usable(found)
}

/// Checks that the path has no colon or blank, which separate the paths in `LD_PRELOAD`.
fn usable(path: PathBuf) -> Result<PathBuf> {
    let path = std::fs::canonicalize(&path).map_err(Error::file(&path))?;
    if path.as_os_str().as_bytes().iter().any(|byte| b": \t\n".contains(byte)) {
        return Err(Error::Refused(format!(
            "{}: {VARIABLE} does not support a path with a colon or a blank; copy the library and set {ELSEWHERE}=PATH",
            text::path(&path)
        )));
    }
    Ok(path)
}

/// Names a file to which the library appends the path of each file that it watches, ended by a NUL.
pub const FILES: &str = "JITSCRIBE_BRIDGE_FILES";
/// With the value `maps`, the library announces neither code from dumps, nor code from the perf map of a process that writes a
/// dump.
pub const WHAT: &str = "JITSCRIBE_BRIDGE";

/// Number of folders that a program's folder is below the root, at most.
const DEEPEST: usize = 64;

/// The new value of [`VARIABLE`]: its current value, followed by the library.
///
/// musl's dynamic linker ends a program for which it finds a library that needs glibc, but not one for which it finds no library.
/// So the path begins with what only glibc replaces, by the folder of the program, and goes from there to the root.
pub fn value(library: &Path) -> OsString {
    let mut value = std::env::var_os(VARIABLE).unwrap_or_default();
    if !value.is_empty() {
        value.push(":");
    }
    value.push("$ORIGIN");
    value.push("/..".repeat(DEEPEST));
    value.push(library);
    value
}

/// The setting that loads the library, as a word for the shell.
pub fn setting(value: &OsStr) -> String {
    let mut setting = OsString::from(VARIABLE);
    setting.push("=");
    setting.push(value);
    shell_word(&setting)
}

/// Warns if the library will have no effect in a command.
pub fn warn_of_obstacle(program: &OsStr) {
    if let Some((path, obstacle)) = found(program).and_then(|path| obstacle(&path)) {
        note::warning(format_args!(
            "{}: {}; its code is not announced while it runs",
            shell_word(&path),
            obstacle.said()
        ));
    }
}

/// Why the library has no effect in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Bits32,
    Static,
    Musl,
    MoreRights,
}

impl Obstacle {
    fn said(self) -> &'static str {
        match self {
            Self::Bits32 => "it is a 32-bit program",
            Self::Static => "it is statically linked, so LD_PRELOAD has no effect",
            Self::Musl => "it is linked with musl, but the library needs glibc",
            Self::MoreRights => "it runs with more privileges than yours, so LD_PRELOAD is ignored",
        }
    }
}

/// The file of a program, searched as the shell does.
fn found(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    search_path::candidates(program).into_iter().find(|path| path.is_file())
}

/// Why the dynamic linker will not load the library into a program, or into the interpreter of a script.
fn obstacle(program: &Path) -> Option<(PathBuf, Obstacle)> {
    /// The number of nested scripts that the kernel follows.
    const SCRIPTS: usize = 5;
    let mut path = program.to_owned();
    for _ in 0..SCRIPTS {
        let mut head = Vec::new();
        File::open(&path).ok()?.take(1 << 16).read_to_end(&mut head).ok()?;
        match head.strip_prefix(b"#!") {
            Some(line) => path = interpreter(line)?,
            None => {
                let cause = obstacle_in(&head).or_else(|| has_more_rights(&path))?;
                return Some((path, cause));
            }
        }
    }
    None
}

/// The words that start a script, without its arguments, as the kernel derives them from the script's first line. For callers
/// that must start a program. `None` if the file is not a script.
pub fn script(program: &OsStr) -> Option<Vec<OsString>> {
    let path = found(program)?;
    let mut head = Vec::new();
    File::open(&path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    // Everything after the interpreter is one argument.
    let words = line.splitn(2, |byte| b" \t".contains(byte)).map(<[u8]>::trim_ascii);
    let words = words.map(|word| OsString::from_vec(word.to_vec()));
    Some(words.chain([path.into_os_string()]).collect())
}

/// The program that a script's first line names, directly or through `env`.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?));
    if first.file_name() == Some(OsStr::new("env")) {
        let is_name = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
        return found(OsStr::from_bytes(words.find(is_name)?));
    }
    Some(first.to_owned())
}

fn obstacle_in(head: &[u8]) -> Option<Obstacle> {
    /// `ELFCLASS32`, the value of `EI_CLASS` in 32-bit files.
    const CLASS_32: u8 = 1;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    if head.get(4) == Some(&CLASS_32) {
        return Some(Obstacle::Bits32);
    }
    let header = FileHeader64::<Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let programs = header.program_headers(endian, head).ok()?;
    let linker = programs.iter().find(|program| program.p_type(endian) == PT_INTERP);
    let Some(linker) = linker else { return Some(Obstacle::Static) };
    let path = linker.data(endian, head).ok()?;
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    name.starts_with(b"ld-musl").then_some(Obstacle::Musl)
}

/// Whether the kernel gives the program privileges that its caller lacks. The dynamic linker then ignores `LD_PRELOAD`.
fn has_more_rights(path: &Path) -> Option<Obstacle> {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2000;
    let file = path.metadata().ok()?;
    let other_user =
        file.mode() & SET_USER != 0 && file.uid() != rustix::process::getuid().as_raw();
    let other_group =
        file.mode() & SET_GROUP != 0 && file.gid() != rustix::process::getgid().as_raw();
    let mut buffer = [0_u8; 64];
    let capable = rustix::fs::getxattr(path, c"security.capability", &mut buffer).is_ok()
        && !rustix::process::getuid().is_root();
    (other_user || other_group || capable).then_some(Obstacle::MoreRights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lead_to_their_programs() {
        assert_eq!(interpreter(b"/bin/sh -e\nx"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b" /usr/bin/env -S X=1 sh -x\n"), found(OsStr::new("sh")));
        assert_eq!(interpreter(b"\n"), None);
    }

    #[test]
    fn scripts_are_started_as_the_kernel_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        std::fs::write(&path, "#! /usr/bin/env  -S x y\nz").unwrap();
        let words = script(path.as_os_str()).unwrap();
        assert_eq!(words, [OsStr::new("/usr/bin/env"), OsStr::new("-S x y"), path.as_os_str()]);
        assert_eq!(script(OsStr::new("/bin/sh")), None);
    }

    #[test]
    fn programs_of_this_machine_have_no_obstacle() {
        assert_eq!(obstacle(Path::new("/bin/sh")), None);
        assert_eq!(obstacle_in(b"\x7fELF\x01"), Some(Obstacle::Bits32));
        assert_eq!(obstacle_in(b"MZ"), None);
    }
}
