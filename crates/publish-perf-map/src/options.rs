//! What can be chosen.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What is told when the map is given up.
pub(crate) type Reporter = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the map is kept, and what becomes of it.
#[derive(Clone)]
pub struct Options {
    pub(crate) directory: PathBuf,
    pub(crate) remove_at_end: bool,
    pub(crate) reporter: Option<Reporter>,
}

impl Default for Options {
    fn default() -> Self {
        Options { directory: "/tmp".into(), remove_at_end: false, reporter: None }
    }
}

impl Options {
    /// The map goes to `/tmp`, stays there at the end, and no one is told when it is given up.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The folder of the map, which must exist. perf reads `/tmp` only: in the mount namespace
    /// of the process while it lives, and in its own afterwards.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Whether [`PerfMap::close`](crate::PerfMap::close) and dropping the map delete the file.
    /// By default it stays: `perf report` reads it after the process has ended.
    #[must_use]
    pub fn remove_at_end(mut self, remove: bool) -> Self {
        self.remove_at_end = remove;
        self
    }

    /// Who is told, once, why the map is given up. It is called on the thread that met the
    /// trouble, inside the call that did, with no lock held.
    #[must_use]
    pub fn reporter(mut self, reporter: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.reporter = Some(Arc::new(reporter));
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
