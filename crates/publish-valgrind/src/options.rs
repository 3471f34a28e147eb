//! What can be chosen.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What is told when the publisher gives up.
pub(crate) type Reporter = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the object files are kept, and who is told of trouble.
#[derive(Clone)]
pub struct Options {
    pub(crate) directory: PathBuf,
    pub(crate) reporter: Option<Reporter>,
}

impl Options {
    /// The object files go to `directory`, which must be there. Give it one that others cannot write
    /// to: valgrind reads the files by their paths. They stay when the process ends, for profiles name them.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Options { directory: directory.into(), reporter: None }
    }

    /// Who is told, once, why the publisher gives up. It is called on the thread that met the
    /// trouble, inside the call that did, with no lock held.
    #[must_use]
    pub fn reporter(mut self, reporter: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.reporter = Some(Arc::new(reporter));
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("directory", &self.directory).finish_non_exhaustive()
    }
}
