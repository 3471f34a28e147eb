//! Files that come to be whole or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file that is written beside its place and renamed into it when done. Dropped before that, it
/// leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    file: NamedTempFile,
    path: PathBuf,
    /// How its place is called in what is said.
    called: PathBuf,
    replace: bool,
}

impl Output {
    /// Begins the file `path`. What already lies there is replaced only with `force`, and only
    /// when the new file is whole.
    pub fn create(path: &Path, force: bool) -> Result<Self> {
        Self::create_called(path, path, force)
    }

    /// The same where a user knows the place by another path.
    pub fn create_called(path: &Path, called: &Path, force: bool) -> Result<Self> {
        if !force && path.symlink_metadata().is_ok() {
            return Err(exists(called));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = NamedTempFile::new_in(folder).map_err(Error::file(called))?;
        Ok(Self { file, path: path.to_owned(), called: called.to_owned(), replace: force })
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Puts the file into its place.
    pub fn finish(self) -> Result<()> {
        let Self { file, path, called, replace } = self;
        let kept = if replace { file.persist(&path) } else { file.persist_noclobber(&path) };
        match kept {
            Ok(_) => Ok(()),
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists(&called))
            }
            Err(failed) => Err(Error::File { path: called, source: failed.error }),
        }
    }
}

fn exists(path: &Path) -> Error {
    Error::Refused(format!("{}: exists already; --force replaces it", path.display()))
}
