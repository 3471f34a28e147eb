//! The folder in which a recording comes to be.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Error, Result};

/// A folder for this user alone beside the output, with the recording as perf makes it and the dumps
/// of the runtimes that let us say where. It goes when dropped, unless it is to stay.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    temporary: Option<TempDir>,
}

impl Workspace {
    /// Makes the folder: one that goes, or `keep_at` that stays.
    pub fn new(output: &Path, keep_at: Option<&Path>) -> Result<Self> {
        let beside = match output.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (path, temporary) = match keep_at {
            Some(path) => {
                DirBuilder::new().mode(0o700).create(path).map_err(Error::file(path))?;
                (path.to_owned(), None)
            }
            None => {
                let mut builder = tempfile::Builder::new();
                builder.prefix(".jitscribe-").permissions(Permissions::from_mode(0o700));
                let folder = builder.tempdir_in(beside).map_err(Error::file(beside))?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        // Runtimes change their working directory.
        let path = fs::canonicalize(&path).map_err(Error::file(&path))?;
        Ok(Self { path, temporary })
    }

    /// The recording as perf makes it.
    pub fn recording(&self) -> PathBuf {
        self.path.join("perf.data")
    }

    /// Where dumps go; perf's marker events keep this path.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder where it is: what was recorded must not be lost.
    pub fn keep(&mut self) {
        if let Some(folder) = self.temporary.take() {
            // The path is known already.
            _ = folder.keep();
        }
    }
}
