//! Settings of a perf map.

use std::fmt;
use std::path::Path;

use fallible::PathText;

/// Called when the map is given up.
pub(crate) type Reporter = Box<dyn Fn(&str) + Send + Sync>;

/// Settings of a perf map.
#[derive(Default)]
pub struct Options {
    /// `None`: the directory in which perf looks.
    pub(crate) directory: Option<PathText>,
    /// Whether an allocation for one of the settings failed.
    pub(crate) is_refused: bool,
    pub(crate) remove_at_end: bool,
    pub(crate) reporter: Option<Reporter>,
}

impl Options {
    /// The map is in `/tmp`, stays there at the end, and errors are not reported.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The directory of the map, which must exist. perf only reads `/tmp`: in the mount namespace
    /// of the process while it lives, and in its own afterwards.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = PathText::new(directory);
        self.is_refused |= self.directory.is_none();
        self
    }

    /// Whether [`PerfMap::close`](crate::PerfMap::close) and dropping the map delete the file. By
    /// default it stays: `perf report` reads it after the process has ended.
    #[must_use]
    pub fn remove_at_end(mut self, remove: bool) -> Self {
        self.remove_at_end = remove;
        self
    }

    /// Called once, with the reason, if the map is given up: on the thread that met the error,
    /// inside the call that failed, with no lock held.
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
        f.debug_struct("Options")
            .field("directory", &self.directory)
            .field("remove_at_end", &self.remove_at_end)
            .finish_non_exhaustive()
    }
}
