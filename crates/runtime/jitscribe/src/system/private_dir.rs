//! Paths, and the directory that belongs to this user alone.

use fallible::{OsError, PathText, Vec, variable};
use rustix::fs::{FileType, Mode, lstat, mkdir};
use rustix::io::Errno;

/// A path in the system's form; `None` if an allocation fails.
pub(crate) fn path(bytes: &[u8]) -> Option<PathText> {
    use std::os::unix::ffi::OsStrExt;
    let path = PathText::new(std::ffi::OsStr::from_bytes(bytes));
    if path.is_none() {
        fallible::refuse();
    }
    path
}

/// Why there is no directory that is private to this user.
#[derive(Debug)]
pub(crate) enum NoDirectory {
    /// No environment variable determines the directory.
    Unsaid,
    /// Others may write to it.
    Shared(PathText),
    System(Errno),
    Memory,
}

impl std::fmt::Display for NoDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsaid => f.write_str("set JITSCRIBE_DIR, XDG_RUNTIME_DIR or HOME"),
            Self::Shared(path) => {
                write!(f, "{} is not this user's alone", path.as_path().display())
            }
            Self::System(error) => write!(f, "{}", OsError(error.raw_os_error())),
            Self::Memory => f.write_str("out of memory"),
        }
    }
}

/// A directory that is private to this user.
pub(crate) fn private_dir() -> Result<PathText, NoDirectory> {
    fallible::attempt(make_private_dir).unwrap_or(Err(NoDirectory::Memory))
}

fn make_private_dir() -> Result<PathText, NoDirectory> {
    let mut missing = Vec::new();
    let mut dir = match (variable(c"XDG_RUNTIME_DIR"), variable(c"HOME")) {
        (Some(dir), _) => path(&dir),
        (None, Some(home)) => path(&home).and_then(|home| home.join(".cache")),
        (None, None) => return Err(NoDirectory::Unsaid),
    };
    dir = dir.and_then(|dir| dir.join("jitscribe"));
    let dir = dir.ok_or(NoDirectory::Memory)?;
    // The parent directories that do not exist, the innermost first.
    for around in dir.as_path().ancestors() {
        let around = PathText::new(around).ok_or(NoDirectory::Memory)?;
        match mkdir(around.as_c_str(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => break,
            Err(Errno::NOENT) => missing.push(around),
            Err(error) => return Err(NoDirectory::System(error)),
        }
    }
    for around in missing.iter().rev() {
        match mkdir(around.as_c_str(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(NoDirectory::System(error)),
        }
    }
    let found = lstat(dir.as_c_str()).map_err(NoDirectory::System)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory
        || found.st_uid != rustix::process::geteuid().as_raw()
        || found.st_mode & 0o022 != 0
    {
        return Err(NoDirectory::Shared(dir));
    }
    Ok(dir)
}
