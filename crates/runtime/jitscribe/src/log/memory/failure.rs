//! Why something is not available.

use std::fmt;
use std::path::Path;

use fallible::{OsError, PathText};

use super::Errno;

/// Why something is not available.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: What,
    pub(crate) cause: Errno,
}

/// The thing that is not available.
#[derive(Debug)]
pub(crate) enum What {
    Named(&'static str),
    /// `None` if there was no memory for its path.
    File(Option<PathText>),
}

impl Failure {
    pub(crate) fn of(what: &'static str, cause: Errno) -> Self {
        Self { what: What::Named(what), cause }
    }

    pub(crate) fn at(path: &Path, cause: Errno) -> Self {
        Self { what: What::File(PathText::new(path)), cause }
    }

    /// An allocation failed.
    pub(crate) fn memory(what: &'static str) -> Self {
        Self::of(what, Errno::NOMEM)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Named(what) => f.write_str(what)?,
            What::File(Some(path)) => write!(f, "{}", path.as_path().display())?,
            What::File(None) => f.write_str("the file")?,
        }
        // The error's own message would allocate.
        write!(f, ": {}", OsError(self.cause.raw_os_error()))
    }
}
