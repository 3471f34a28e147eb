//! Why valgrind cannot be shown any code.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why the publisher could not begin, or why it gave up, and which file it was about.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    cause: Cause,
}

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// No valgrind runs this process.
    NoValgrind,
    /// A system call failed.
    System {
        /// What was being done, as in "cannot …".
        doing: &'static str,
        /// What the kernel, or valgrind in its place, said.
        error: std::io::Error,
    },
    /// The object file was mapped, and valgrind knows nothing of it all the same.
    Ignored,
    /// The code lies in memory that cannot be looked at as whole pages of this process.
    Place,
    /// The code lies on the stack of the thread that announces it.
    Stack,
    /// The file would outgrow the process's `RLIMIT_FSIZE`. Trying would raise SIGXFSZ.
    SizeLimit,
    /// So many stretches of memory hold code that valgrind would run out of room for its list of mappings.
    TooMany,
    /// The process was forked while another thread was announcing code.
    ForkedAmidWork,
}

impl Error {
    pub(crate) fn new(path: &Path, cause: Cause) -> Self {
        Error { path: path.to_owned(), cause }
    }

    /// The object file, or the folder of all of them.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What went wrong.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
}

impl Cause {
    /// For `map_err`: names what was being done when the kernel refused.
    pub(crate) fn system<E: Into<std::io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Cause {
        move |error| Cause::System { doing, error: error.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valgrind is shown no code: {}: {}", self.path.display(), self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NoValgrind => f.write_str("no valgrind runs this process"),
            Cause::System { doing, error } => write!(f, "cannot {doing}: {error}"),
            Cause::Ignored => f.write_str("valgrind does not take the object file"),
            Cause::Place => f.write_str("the code lies in no memory of its own"),
            Cause::Stack => f.write_str("the code lies on the stack"),
            Cause::SizeLimit => f.write_str("it would exceed the limit on file sizes (ulimit -f)"),
            Cause::TooMany => f.write_str("too many stretches of memory hold code"),
            Cause::ForkedAmidWork => {
                f.write_str("the process was forked while another thread was announcing code")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
