//! Why there is no arena.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why an arena could not be made.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    doing: &'static str,
    cause: io::Error,
}

impl Error {
    pub(crate) fn new(path: &Path, doing: &'static str, cause: impl Into<io::Error>) -> Self {
        Self { path: path.to_owned(), doing, cause: cause.into() }
    }

    /// The file, or the directory that it was to be in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no arena for code: {}: cannot {}: {}",
            self.path.display(),
            self.doing,
            self.cause
        )
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
