//! Folders that are written into, each opened once: what another user does to its path later does not matter.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, access, fstat, linkat, mkdirat, openat, statat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::{Error, Result};

/// A folder that is open.
#[derive(Debug)]
pub struct Folder {
    pub(super) open: OwnedFd,
    path: PathBuf,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder {
    /// Creates a folder to write into, or opens an existing one unless another user may have planted it: in a folder like `/tmp`,
    /// any user can create an entry under the name that we are going to use.
    ///
    /// # Errors
    /// If the folder cannot be created; if the path is a symbolic link of another user (links of root are followed); or if the
    /// folder belongs to another user and its parent is writable to others, unless both belong to the same user.
    pub fn create(path: &Path) -> Result<Self> {
        let above = parent(path);
        fs::create_dir_all(above).map_err(Error::file(path))?;
        let failed = |error: Errno| Error::file(path)(error.into());
        let Some(name) = path.file_name() else { return Self::open(path) };
        let above = Self::open(above)?;
        match mkdirat(&above.open, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Self::existing(&above, name, path),
            Err(error) => return Err(failed(error)),
        }
        let open = openat(&above.open, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        Ok(Self { open: open.map_err(failed)?, path: path.to_owned() })
    }

    fn existing(above: &Self, name: &OsStr, path: &Path) -> Result<Self> {
        let failed = |error: Errno| Error::file(path)(error.into());
        let there = statat(&above.open, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let place = fstat(&above.open).map_err(failed)?;
        let is_link = FileType::from_raw_mode(there.st_mode) == FileType::Symlink;
        let is_trap = |owner: u32| {
            let is_ours = owner == geteuid().as_raw();
            let others_write = place.st_mode & 0o022 != 0;
            match is_link {
                true => !is_ours && owner != 0,
                false => !is_ours && others_write && owner != place.st_uid,
            }
        };
        let refused = |owner| Error::Untrusted { path: path.to_owned(), owner, is_link };
        if is_trap(there.st_uid) {
            return Err(refused(there.st_uid));
        }
        // A link that is put there now is not followed.
        let follow = if is_link { OFlags::empty() } else { OFlags::NOFOLLOW };
        let open = openat(&above.open, name, FOLDER | follow, Mode::empty()).map_err(failed)?;
        let opened = fstat(&open).map_err(failed)?;
        if !is_link && is_trap(opened.st_uid) {
            return Err(refused(opened.st_uid));
        }
        Ok(Self { open, path: path.to_owned() })
    }

    /// Opens a folder at the path that the user named. Links are followed.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> Result<Self> {
        let open = openat(CWD, path, FOLDER, Mode::empty());
        let open = open.map_err(|error| Error::file(path)(error.into()))?;
        Ok(Self { open, path: path.to_owned() })
    }

    /// Opens a folder in it, which is created if it does not exist. A link is refused.
    ///
    /// # Errors
    /// The system's error.
    pub fn inner(&self, name: &OsStr) -> io::Result<Self> {
        match mkdirat(&self.open, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let open = openat(&self.open, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { open, path: self.path.join(name) })
    }

    /// Opens a folder below it, each as [`inner`](Self::inner) does.
    ///
    /// # Errors
    /// The system's error.
    pub fn below<'p>(
        self: &Arc<Self>,
        folders: impl IntoIterator<Item = &'p OsStr>,
    ) -> io::Result<Arc<Self>> {
        let open = |folder: Arc<Self>, name| folder.inner(name).map(Arc::new);
        folders.into_iter().try_fold(Arc::clone(self), open)
    }

    /// Creates a file in it, for which there must be nothing yet.
    ///
    /// # Errors
    /// The system's error.
    pub fn new_file(&self, name: &OsStr, mode: Mode) -> std::result::Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(&self.open, name, flags | OFlags::NOFOLLOW, mode)?.into())
    }

    /// Creates a file on its file system that has no name yet, and that only its owner may read. It is gone once it is closed.
    ///
    /// # Errors
    /// The system's error: not all file systems have such files, and without `/proc`, [`name_file`](Self::name_file) cannot
    /// name them.
    pub(super) fn unnamed_file(&self) -> std::result::Result<File, Errno> {
        access("/proc/self/fd", Access::EXEC_OK)?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        Ok(openat(&self.open, ".", flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Gives a file from [`unnamed_file`](Self::unnamed_file) this name, for which there must be nothing yet.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn name_file(&self, file: &File, name: &OsStr) -> std::result::Result<(), Errno> {
        let file = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(CWD, file, &self.open, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Whether a regular file in it has this content. A link has none.
    ///
    /// # Errors
    /// The system's error.
    pub fn has(&self, name: &OsStr, content: &[u8]) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&self.open, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => return Ok(false),
            opened => File::from(opened?),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() != content.len() as u64 {
            return Ok(false);
        }
        let mut found = Vec::new();
        file.take(content.len() as u64).read_to_end(&mut found)?;
        Ok(found == content)
    }

    /// The path by which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its absolute path without links, by which other programs find it in any working directory.
    ///
    /// # Errors
    /// If that path leads to another folder by now.
    pub fn canonical(mut self) -> Result<Self> {
        let path = fs::canonicalize(&self.path).map_err(Error::file(&self.path))?;
        let identity = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
        let opened = fstat(&self.open).map_err(|error| Error::file(&path)(error.into()))?;
        let named = rustix::fs::lstat(&path).map_err(|error| Error::file(&path)(error.into()))?;
        if identity(opened) != identity(named) {
            let moved = io::Error::other("the folder was replaced while this program ran");
            return Err(Error::File { path, source: moved });
        }
        self.path = path;
        Ok(self)
    }
}

/// The folder that a path is in; the current one for a name alone.
#[must_use]
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether only this user and root can rename or replace what is created in a folder: it, and each folder above, belongs to one of
/// them, and is not writable to others, or has the sticky bit. The group of this process counts as its user.
#[must_use]
pub fn is_safe_from_others(folder: &Path) -> bool {
    let Ok(folder) = fs::canonicalize(folder) else { return false };
    let (us, our_group) = (geteuid().as_raw(), getegid().as_raw());
    folder.ancestors().all(|folder| {
        fs::symlink_metadata(folder).is_ok_and(|status| {
            let others = if status.gid() == our_group { 0o002 } else { 0o022 };
            let is_closed = status.mode() & others == 0 || status.mode() & 0o1000 != 0;
            (status.uid() == us || status.uid() == 0) && is_closed
        })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_is_open_stays_the_same_folder() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::create(&top.path().join("images")).unwrap();
        fs::rename(top.path().join("images"), top.path().join("away")).unwrap();
        let elsewhere = top.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, top.path().join("images")).unwrap();
        folder.new_file("x".as_ref(), Mode::RUSR).unwrap();
        folder.inner("y".as_ref()).unwrap().new_file("z".as_ref(), Mode::RUSR).unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert!(top.path().join("away/y/z").is_file());
        assert!(folder.canonical().is_err());
    }

    #[test]
    fn links_in_it_are_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::create(&top.path().join("images")).unwrap();
        symlink(top.path(), top.path().join("images/up")).unwrap();
        symlink("../target", top.path().join("images/file")).unwrap();
        assert!(folder.inner("up".as_ref()).is_err());
        assert!(folder.new_file("file".as_ref(), Mode::RUSR).is_err());
        assert!(!folder.has("file".as_ref(), b"").unwrap());
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_others_may_change_is_not_safe() {
        let top = tempfile::tempdir().unwrap();
        assert!(is_safe_from_others(top.path()));
        let inner = top.path().join("open/inner");
        fs::create_dir_all(&inner).unwrap();
        assert!(is_safe_from_others(&inner));
        let open = |mode| {
            fs::set_permissions(top.path().join("open"), fs::Permissions::from_mode(mode)).unwrap();
        };
        open(0o777);
        assert!(!is_safe_from_others(&inner));
        open(0o1777);
        assert!(is_safe_from_others(&inner));
        assert!(!is_safe_from_others(&top.path().join("absent")));
    }
}
