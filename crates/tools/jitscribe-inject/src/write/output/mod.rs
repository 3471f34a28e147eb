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

/// A file that gets its name in the target folder when it is complete. Dropping it before [`finish`](Self::finish) leaves nothing
/// behind; neither does the end of the process, where the file system has files without names. Elsewhere it has a temporary name.
///
/// The folder is opened once: a link that another user puts in its place is not followed.
#[derive(Debug)]
pub struct Output {
    folder: Arc<Folder>,
    name: OsString,
    state: State,
    file: File,
    path: PathBuf,
    existing: Existing,
}

/// How the file is known while it is written.
#[derive(Debug)]
enum State {
    /// By its descriptor alone.
    Unnamed,
    /// By this name.
    Temporary(OsString),
    /// It has its own name.
    Finished,
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
        let (state, file) = match folder.unnamed_file() {
            Ok(file) => (State::Unnamed, file),
            // The file system cannot do it. Other errors come again.
            Err(_) => temporary(&folder).map_err(Error::file(&path))?,
        };
        Ok(Self { folder, name: name.to_owned(), state, file, path, existing })
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

    /// Gives the file its name.
    ///
    /// # Errors
    /// The same as for [`Self::create`].
    pub fn finish(mut self) -> Result<()> {
        self.keep_old()?;
        let (folder, name) = (&self.folder.open, &*self.name);
        let failed = |error| match error {
            Errno::EXIST => exists(&self.path),
            error => Error::File { path: self.path.clone(), source: error.into() },
        };
        if matches!(self.state, State::Unnamed) {
            if !matches!(self.existing, Existing::Replace) {
                self.folder.name_file(&self.file, name).map_err(failed)?;
                self.state = State::Finished;
                return Ok(());
            }
            // A link does not replace a file.
            let temporary = free_name(|name| self.folder.name_file(&self.file, name));
            self.state = State::Temporary(temporary.map_err(failed)?.0);
        }
        let State::Temporary(temporary) = &self.state else { return Ok(()) };
        let renamed = match self.existing {
            Existing::Replace => renameat(folder, &**temporary, folder, name),
            Existing::Refuse | Existing::Rename(_) => {
                match renameat_with(folder, &**temporary, folder, name, RenameFlags::NOREPLACE) {
                    // The file system or the kernel does not know the flag.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        linkat(folder, &**temporary, folder, name, AtFlags::empty())
                            .and_then(|()| unlinkat(folder, &**temporary, AtFlags::empty()))
                    }
                    done => done,
                }
            }
        };
        renamed.map_err(failed)?;
        self.state = State::Finished;
        Ok(())
    }

    /// Renames an existing file, if it is to be kept.
    fn keep_old(&self) -> Result<()> {
        let (folder, name) = (&self.folder.open, &*self.name);
        if let Existing::Rename(old) = &self.existing {
            match renameat(folder, name, folder, &**old) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(Error::file(self.path.with_file_name(old))(error.into())),
            }
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let State::Temporary(temporary) = &self.state {
            _ = unlinkat(&self.folder.open, &**temporary, AtFlags::empty());
        }
    }
}

/// A new file in a folder that only its owner may read, with a name that none has.
fn temporary(folder: &Folder) -> io::Result<(State, File)> {
    let (name, file) = free_name(|name| folder.new_file(name, Mode::RUSR | Mode::WUSR))?;
    Ok((State::Temporary(name), file))
}

/// A temporary name under which `make` finds nothing yet, and what it made.
fn free_name<T>(
    make: impl Fn(&OsStr) -> std::result::Result<T, Errno>,
) -> std::result::Result<(OsString, T), Errno> {
    let random = RandomState::new();
    for number in 0..100 {
        let name = OsString::from(format!(".jitscribe-{:016x}", random.hash_one(number)));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return made.map(|made| (name, made)),
        }
    }
    Err(Errno::EXIST)
}

/// The error for a path that does not end with the name of a file.
fn is_folder(path: &Path) -> Error {
    Error::File { path: path.to_owned(), source: io::ErrorKind::IsADirectory.into() }
}

/// The error for an existing file that must not be replaced.
fn exists(path: &Path) -> Error {
    Error::Exists { path: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use tempfile::TempDir;

    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    /// An output as it is on each kind of file system, with content.
    fn begun(path: &Path, existing: Existing, is_named: bool) -> Output {
        let mut output = Output::at(path, existing).unwrap();
        if is_named {
            (output.state, output.file) = temporary(&output.folder).unwrap();
        }
        output.file().write_all(b"new").unwrap();
        output
    }

    #[test]
    fn a_file_is_complete_or_not_there() {
        for is_named in [false, true] {
            let top = TempDir::new().unwrap();
            let path = top.path().join("file");
            let text = |name: &str| fs::read_to_string(top.path().join(name)).unwrap();

            let output = begun(&path, Existing::Refuse, is_named);
            assert!(!path.exists());
            drop(output);
            assert!(names(top.path()).is_empty());
            begun(&path, Existing::Refuse, is_named).finish().unwrap();
            assert_eq!((text("file").as_str(), names(top.path()).len()), ("new", 1));

            fs::write(&path, "old").unwrap();
            assert!(matches!(Output::create(&path, false), Err(Error::Exists { .. })));
            let output = begun(&path, Existing::Replace, is_named);
            assert_eq!(text("file"), "old");
            output.finish().unwrap();
            assert_eq!((text("file").as_str(), names(top.path()).len()), ("new", 1));

            fs::write(&path, "old").unwrap();
            begun(&path, Existing::Rename("file.old".into()), is_named).finish().unwrap();
            assert_eq!((text("file"), text("file.old")), ("new".into(), "old".into()));
            assert_eq!(names(top.path()).len(), 2);

            // A file that came to be there since.
            fs::remove_file(&path).unwrap();
            let output = begun(&path, Existing::Refuse, is_named);
            fs::write(&path, "other").unwrap();
            assert!(matches!(output.finish(), Err(Error::Exists { .. })));
            assert_eq!((text("file").as_str(), names(top.path()).len()), ("other", 2));
        }
    }

    /// What ends this process in between leaves nothing.
    #[test]
    fn a_file_has_no_name_while_it_is_written() {
        let top = TempDir::new().unwrap();
        let output = begun(&top.path().join("file"), Existing::Replace, false);
        let can_be = output.folder.unnamed_file().is_ok();
        assert_eq!(names(top.path()).is_empty(), can_be);
    }
}
