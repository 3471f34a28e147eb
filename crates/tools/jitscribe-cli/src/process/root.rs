//! Paths as a process sees them, which may be in a container.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The flags for opening a folder only to reach something in it.
pub const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a path, resolved with `top` as the root: no link leads out of it.
///
/// # Errors
/// The system's error; [`Errno::NOSYS`] if the kernel (before 5.6) has no `openat2` and `top` is not our root.
pub fn open_in_root(top: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2(top, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        Err(Errno::NOSYS) if is_same(top, Path::new("/")) => {
            openat(CWD, path, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// A path through which this process reaches an open folder.
pub fn path_of(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

fn is_same(a: &OwnedFd, b: &Path) -> bool {
    let folder = |path: &Path| fs::metadata(path).map(|folder| (folder.dev(), folder.ino()));
    matches!((folder(&path_of(a)), folder(b)), (Ok(a), Ok(b)) if a == b)
}
