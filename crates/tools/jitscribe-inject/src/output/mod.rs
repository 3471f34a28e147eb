//! Output files that appear complete or not at all.

mod folder;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, RenameFlags, linkat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

pub use folder::{Folder, is_safe_from_others, parent};

use crate::{Error, Result};

/// A file that is written under a temporary name in the target folder and renamed when complete. Dropping it before
/// [`finish`](Self::finish) leaves nothing behind.
///
/// The folder is opened once: a link that another user puts in its place is not followed.
#[derive(Debug)]
pub struct Output {
    folder: Arc<Folder>,
    name: OsString,
    /// The name while it is written; `None` once it has its own.
    temporary: Option<OsString>,
    file: File,
    path: PathBuf,
    existing: Existing,
}

/// What happens to an existing file.
#[derive(Debug)]
enum Existing {
    /// It stays, and nothing is written.
    Refuse,
    /// It is replaced.
    Replace,
    /// It gets this name in the same folder, and replaces a file there.
    Rename(OsString),
}

impl From<bool> for Existing {
    fn from(replace: bool) -> Self {
        if replace { Self::Replace } else { Self::Refuse }
    }
}

impl Output {
    /// Starts writing the file `path`. An existing file is replaced only if `replace` is true, and only when the new
    /// file is complete.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::File`] if nothing can be written there.
    pub fn create(path: &Path, replace: bool) -> Result<Self> {
        Self::at(path, Existing::from(replace))
    }

    /// Starts writing a file with this name in a folder that is open; otherwise as [`create`](Self::create).
    ///
    /// # Errors
    /// The same.
    pub fn create_in(folder: &Arc<Folder>, name: &OsStr, replace: bool) -> Result<Self> {
        Self::new(Arc::clone(folder), name, folder.path().join(name), Existing::from(replace))
    }

    /// Starts writing the file `path`. When the new file is complete, an existing file is renamed to `old`, a name in the same
    /// folder, and replaces a file there.
    ///
    /// # Errors
    /// [`Error::File`] if nothing can be written there.
    pub fn keeping(path: &Path, old: &OsStr) -> Result<Self> {
        Self::at(path, Existing::Rename(old.to_owned()))
    }

    fn at(path: &Path, existing: Existing) -> Result<Self> {
        let folder = Folder::open(parent(path)).map_err(|error| match error {
            Error::File { source, .. } => Error::File { path: path.to_owned(), source },
            other => other,
        })?;
        let name = path.file_name().ok_or_else(|| is_folder(path))?;
        Self::new(Arc::new(folder), name, path.to_owned(), existing)
    }

    fn new(folder: Arc<Folder>, name: &OsStr, path: PathBuf, existing: Existing) -> Result<Self> {
        let is_there = statat(&folder.open, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if is_there && matches!(existing, Existing::Refuse) {
            return Err(exists(&path));
        }
        let (temporary, file) = temporary(&folder).map_err(Error::file(&path))?;
        let name = name.to_owned();
        Ok(Self { folder, name, temporary: Some(temporary), file, path, existing })
    }

    /// Its final path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Renames the file to its path.
    ///
    /// # Errors
    /// The same as for [`Self::create`].
    pub fn finish(mut self) -> Result<()> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        let done = self.rename(&temporary);
        if done.is_err() {
            self.temporary = Some(temporary);
        }
        done
    }

    fn rename(&self, temporary: &OsStr) -> Result<()> {
        let (folder, name) = (&self.folder.open, &*self.name);
        if let Existing::Rename(old) = &self.existing {
            match renameat(folder, name, folder, &**old) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(Error::file(self.path.with_file_name(old))(error.into())),
            }
        }
        let renamed = match self.existing {
            Existing::Replace => renameat(folder, temporary, folder, name),
            Existing::Refuse | Existing::Rename(_) => {
                match renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
                    // The file system or the kernel does not know the flag.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        linkat(folder, temporary, folder, name, AtFlags::empty())
                            .and_then(|()| unlinkat(folder, temporary, AtFlags::empty()))
                    }
                    done => done,
                }
            }
        };
        match renamed {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(exists(&self.path)),
            Err(error) => Err(Error::File { path: self.path.clone(), source: error.into() }),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            _ = unlinkat(&self.folder.open, &*temporary, AtFlags::empty());
        }
    }
}

/// A new file in a folder that only its owner may read, with a name that none has.
fn temporary(folder: &Folder) -> io::Result<(OsString, File)> {
    let random = RandomState::new();
    for number in 0..100 {
        let name = OsString::from(format!(".jitscribe-{:016x}", random.hash_one(number)));
        match folder.new_file(&name, Mode::RUSR | Mode::WUSR) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (name, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The error for a path that does not end with the name of a file.
fn is_folder(path: &Path) -> Error {
    Error::File { path: path.to_owned(), source: io::ErrorKind::IsADirectory.into() }
}

/// The error for an existing file that must not be replaced.
fn exists(path: &Path) -> Error {
    Error::Exists { path: path.to_owned() }
}
