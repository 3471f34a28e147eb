//! Output files that appear complete or not at all.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file that is written under a temporary name in the target folder and renamed when complete. Dropping it before
/// [`finish`](Self::finish) leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    file: NamedTempFile,
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
    /// It gets this name, and replaces a file there.
    Rename(PathBuf),
}

impl Output {
    /// Starts writing the file `path`. An existing file is replaced only if `replace` is true, and only when the new
    /// file is complete.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::File`] if nothing can be written there.
    pub fn create(path: &Path, replace: bool) -> Result<Self> {
        if !replace && path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let existing = if replace { Existing::Replace } else { Existing::Refuse };
        Self::new(path, existing)
    }

    /// Starts writing the file `path`. When the new file is complete, an existing file is renamed to `old`, and replaces a
    /// file there.
    ///
    /// # Errors
    /// [`Error::File`] if nothing can be written there.
    pub fn keeping(path: &Path, old: &Path) -> Result<Self> {
        Self::new(path, Existing::Rename(old.to_owned()))
    }

    fn new(path: &Path, existing: Existing) -> Result<Self> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = NamedTempFile::new_in(folder).map_err(Error::file(path))?;
        Ok(Self { file, path: path.to_owned(), existing })
    }

    /// Its final path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Renames the file to its path.
    ///
    /// # Errors
    /// The same as for [`Self::create`].
    pub fn finish(self) -> Result<()> {
        let Self { file, path, existing } = self;
        if let Existing::Rename(old) = &existing {
            match fs::rename(&path, old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::File { path: old.clone(), source: error });
                }
                _ => {}
            }
        }
        let kept = match existing {
            Existing::Replace => file.persist(&path),
            Existing::Refuse | Existing::Rename(_) => file.persist_noclobber(&path),
        };
        match kept {
            Ok(_) => Ok(()),
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists(&path))
            }
            Err(failed) => Err(Error::File { path, source: failed.error }),
        }
    }
}

/// Creates a folder to write into, or uses an existing one unless another user may have planted it: in a folder like `/tmp`,
/// any user can create an entry under the name that we are going to use.
///
/// # Errors
/// If the folder cannot be created; if the path is a symbolic link of another user (links of root are followed); or if the
/// folder belongs to another user and its parent is writable to others, unless both belong to the same user.
pub fn folder(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(Error::file(path))?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(Error::file(path)),
    }
    // A trailing slash would make `symlink_metadata` follow the link.
    let name = path.file_name().map(|name| parent.join(name));
    let there = fs::symlink_metadata(name.as_deref().unwrap_or(path)).map_err(Error::file(path))?;
    let owner = there.uid();
    let is_ours = owner == geteuid().as_raw();
    let place = fs::metadata(parent).map_err(Error::file(parent))?;
    let others_write = place.mode() & 0o022 != 0;
    let is_trap = if there.is_symlink() {
        !is_ours && owner != 0
    } else {
        !is_ours && others_write && owner != place.uid()
    };
    if is_trap {
        let is_link = there.is_symlink();
        return Err(Error::Untrusted { path: path.to_owned(), owner, is_link });
    }
    if fs::metadata(path).is_ok_and(|there| there.is_dir()) {
        Ok(())
    } else {
        Err(Error::File { path: path.to_owned(), source: io::ErrorKind::NotADirectory.into() })
    }
}

/// The error for an existing file that must not be replaced.
fn exists(path: &Path) -> Error {
    Error::Exists { path: path.to_owned() }
}
