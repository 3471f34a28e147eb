//! Errors of creating an arena.

use std::fmt;
use std::io;
use std::path::Path;

use fallible::{IoError, PathText};

/// The error of creating an arena.
#[derive(Debug)]
pub struct Error {
    /// `None` if there was no memory for it.
    path: Option<PathText>,
    doing: &'static str,
    cause: io::Error,
}

impl Error {
    pub(crate) fn new(path: &Path, doing: &'static str, cause: impl Into<io::Error>) -> Self {
        Self { path: PathText::new(path), doing, cause: cause.into() }
    }

    /// The file, or the directory in which it would have been created.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.path.as_ref().map_or(Path::new(""), PathText::as_path)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no arena for code: {}: cannot {}: {}",
            self.path().display(),
            self.doing,
            IoError(&self.cause)
        )
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
