//! Folders as a process sees them, which may be in a container.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::files::same_file;

/// How a folder is opened that is only a step on the way.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A folder as a process sees it, in which files are to be made.
///
/// A path below `/proc/PID/root` would lead out of the process's file system, into ours, by any link that begins with `/`: who
/// owns a container could have root write where it likes.
#[derive(Debug)]
pub struct FolderInside(OwnedFd);

impl FolderInside {
    /// The folder that process `pid` calls `path`.
    ///
    /// # Errors
    /// If there is none, or we may not look; or if the kernel (before 5.6) has no `openat2`, and the process's root is not ours.
    pub fn open(pid: u32, path: &Path) -> io::Result<Self> {
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let top = openat(CWD, &root, FOLDER, Mode::empty())?;
        let folder = match below(&top, path) {
            Err(Errno::NOSYS) if same_file(&root, Path::new("/")) => {
                openat(CWD, path, FOLDER, Mode::empty())
            }
            folder => folder,
        };
        Ok(Self(folder?))
    }

    /// By which this process reaches it, for as long as this is there.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// A folder by its path, as who has `top` for a root would find it.
fn below(top: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    openat2(top, path, FOLDER, Mode::empty(), ResolveFlags::IN_ROOT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::{fs, process};

    use super::*;

    #[test]
    fn is_the_folder_of_that_name() {
        let own = tempfile::tempdir().unwrap();
        let folder = FolderInside::open(process::id(), own.path()).unwrap();
        fs::write(folder.path().join("file"), "text").unwrap();
        assert_eq!(fs::read_to_string(own.path().join("file")).unwrap(), "text");
    }

    #[test]
    fn a_link_does_not_lead_out() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        symlink("/elsewhere", root.path().join("tmp")).unwrap();
        symlink("../../../../../../elsewhere", root.path().join("up")).unwrap();
        let top = openat(CWD, root.path(), FOLDER, Mode::empty()).unwrap();
        for path in ["/tmp", "up", "../../tmp"] {
            let folder = FolderInside(below(&top, Path::new(path)).unwrap());
            let (found, meant) = (folder.path(), root.path().join("elsewhere"));
            assert_eq!(fs::canonicalize(found).unwrap(), fs::canonicalize(meant).unwrap());
        }
    }
}
