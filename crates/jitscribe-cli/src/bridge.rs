//! The library for `LD_PRELOAD`: where it lies, how a command gets it, and which commands it can do nothing for.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::inject::shell_word;
use crate::{Error, Result, companion, note};

/// What it is called.
const FILE: &str = "libjitscribe_preload.so";
/// Names it where it lies elsewhere.
const ELSEWHERE: &str = "JITSCRIBE_PRELOAD";
/// By which the dynamic linker is told of it.
pub const VARIABLE: &str = "LD_PRELOAD";

/// Where the library lies: where the variable says, else where those lie that come with this command.
pub fn library() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(ELSEWHERE).map(PathBuf::from) {
        return if path.is_file() {
            usable(path)
        } else {
            Err(Error::Refused(format!("{ELSEWHERE}: {}: there is no such file", path.display())))
        };
    }
    let found = companion::library(FILE).ok_or_else(|| {
        Error::Refused(format!(
            "{FILE} is not beside {} nor in ../lib; build it (cargo build --release -p \
             jitscribe-preload), or name it: {ELSEWHERE}=PATH",
            companion::own().display()
        ))
    })?;
    usable(found)
}

/// The dynamic linker takes a list of paths with colons and blanks between them.
fn usable(path: PathBuf) -> Result<PathBuf> {
    let path = std::fs::canonicalize(&path).map_err(Error::file(&path))?;
    if path.as_os_str().as_bytes().iter().any(|byte| b": \t\n".contains(byte)) {
        return Err(Error::Refused(format!(
            "{}: {VARIABLE} cannot name a path with a colon or a blank in it; {ELSEWHERE}=PATH names a copy elsewhere",
            path.display()
        )));
    }
    Ok(path)
}

/// Names a file to which the library adds a line for each file that it watches: its path, and a NUL.
pub const FILES: &str = "JITSCRIBE_BRIDGE_FILES";
/// `maps`: what dumps tell is not announced, nor what a map tells of a process that writes a dump.
pub const WHAT: &str = "JITSCRIBE_BRIDGE";

/// What [`VARIABLE`] is to be: what it is, and the library behind it.
pub fn value(library: &Path) -> OsString {
    let mut value = std::env::var_os(VARIABLE).unwrap_or_default();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(library);
    value
}

/// Whether a command may be given the library. Says for which reason it can do nothing there, if there is one to be seen.
pub fn may_load_into(program: &OsStr) -> bool {
    let Some((path, obstacle)) = found(program).and_then(|path| obstacle(&path)) else {
        return true;
    };
    note::warning(format_args!(
        "{}: {}; what it writes is not announced while it runs",
        shell_word(&path),
        obstacle.said()
    ));
    obstacle != Obstacle::Musl
}

/// Why the library does nothing in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Bits32,
    Static,
    /// Its dynamic linker ends a program that is to have a library of glibc's.
    Musl,
    MoreRights,
}

impl Obstacle {
    fn said(self) -> &'static str {
        match self {
            Self::Bits32 => "it is a program of 32 bits",
            Self::Static => "it is statically linked, and LD_PRELOAD does nothing there",
            Self::Musl => "it is linked with musl, and the library is for glibc: it is run without",
            Self::MoreRights => {
                "it runs with more rights than yours, and LD_PRELOAD is ignored then"
            }
        }
    }
}

/// The file of a program, as the shell finds it.
fn found(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Why the dynamic linker will not load it into a program, or into the one that a script is for.
fn obstacle(program: &Path) -> Option<(PathBuf, Obstacle)> {
    /// As many as the kernel follows.
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

/// The words by which a script is started, before its arguments: what the kernel makes of its first line, for who must start
/// a program. `None` of what is no script.
pub fn script(program: &OsStr) -> Option<Vec<OsString>> {
    let path = found(program)?;
    let mut head = Vec::new();
    File::open(&path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    // All behind the interpreter is one argument.
    let words = line.splitn(2, |byte| b" \t".contains(byte)).map(<[u8]>::trim_ascii);
    let words = words.map(|word| OsString::from_vec(word.to_vec()));
    Some(words.chain([path.into_os_string()]).collect())
}

/// The program that a script's first line names, be it by way of `env`.
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
    /// `EI_CLASS` of 32 bits.
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

/// The dynamic linker takes no libraries from the environment where the kernel gives a program rights that its
/// caller has not.
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
