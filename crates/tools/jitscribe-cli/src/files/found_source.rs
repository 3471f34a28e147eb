//! A jitdump or a perf map that describes the code of a process.

use std::io;
use std::path::PathBuf;

use super::{Kind, Opened, open_owned_by};

/// A file to read, and the owner that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSource {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The owner; `None` for any.
    pub owner: Option<u32>,
}

impl FoundSource {
    /// A file that the user named, which may belong to any user.
    pub fn named(kind: Kind, path: PathBuf) -> Self {
        Self { path, kind, owner: None }
    }

    /// Opens it.
    ///
    /// # Errors
    /// As for [`open_owned_by`].
    pub fn open(&self) -> io::Result<Opened> {
        open_owned_by(self.owner, &self.path)
    }
}
