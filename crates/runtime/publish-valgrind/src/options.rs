//! Settings of the publisher.

use std::fmt;
use std::path::Path;

use fallible::PathText;

use crate::error::{Cause, Error};

/// Called when the publisher gives up.
pub(crate) type Reporter = Box<dyn Fn(&str) + Send + Sync>;

/// Settings of the publisher.
pub struct Options {
    /// `None` if the allocation failed.
    pub(crate) directory: Option<PathText>,
    /// Whether an allocation for one of the settings failed.
    pub(crate) is_refused: bool,
    pub(crate) reporter: Option<Reporter>,
}

impl Options {
    /// The object files go to `directory`, which must exist. Others must not be able to write to it, because
    /// Valgrind reads the files by their paths. They stay when the process ends, because profiles refer to
    /// them.
    #[must_use]
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Options { directory: PathText::new(directory), is_refused: false, reporter: None }
    }

    pub(crate) fn error(&self, cause: Cause) -> Error {
        Error::new(self.directory.as_ref().map_or(Path::new(""), PathText::as_path), cause)
    }

    /// Called once, with the reason, if the publisher gives up: on the thread that met the error, inside the
    /// call that failed, with no lock held.
    #[must_use]
    pub fn reporter(mut self, reporter: impl Fn(&str) + Send + Sync + 'static) -> Self {
        match fallible::boxed(reporter) {
            Ok(reporter) => self.reporter = Some(reporter),
            Err(_) => self.is_refused = true,
        }
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("directory", &self.directory).finish_non_exhaustive()
    }
}
