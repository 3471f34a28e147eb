//! Errors of the publisher.

use std::fmt;
use std::path::Path;

use fallible::{OsError, PathText};

/// Why the publisher could not be created, or gave up, and the file's path.
#[derive(Debug)]
pub struct Error {
    path: Option<PathText>,
    cause: Cause,
}

/// The cause of an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// An allocation failed.
    Memory,
    /// No valgrind runs this process.
    NoValgrind,
    /// A system call failed.
    System {
        /// What was attempted, to follow "cannot".
        doing: &'static str,
        /// The error of the kernel, or of Valgrind in its place.
        error: std::io::Error,
    },
    /// The object file was mapped, but Valgrind did not read it.
    Ignored,
    /// The code is in memory that cannot be handled as whole pages of this process.
    Place,
    /// The code is on the stack of the thread that announces it.
    Stack,
    /// The file would exceed the process's `RLIMIT_FSIZE`. Writing would raise SIGXFSZ.
    SizeLimit,
    /// There are so many separate ranges with code that Valgrind would run out of space for its list of
    /// mappings.
    TooMany,
    /// The process was forked while another thread was announcing code.
    ForkedAmidWork,
}

impl Error {
    pub(crate) fn new(path: &Path, cause: Cause) -> Self {
        Error { path: PathText::new(path), cause }
    }

    /// The object file, or the directory of all of them.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.path.as_ref().map_or(Path::new(""), PathText::as_path)
    }

    /// The cause.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
}

impl Cause {
    /// For `map_err`: adds what was attempted to the system's error.
    pub(crate) fn system<E: Into<std::io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Cause {
        move |error| Cause::System { doing, error: error.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valgrind is shown no code: {}: {}", self.path().display(), self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NoValgrind => f.write_str("no valgrind runs this process"),
            Cause::System { doing, error } => match OsError::of(error) {
                Some(error) => write!(f, "cannot {doing}: {error}"),
                None => write!(f, "cannot {doing}: {}", error.kind()),
            },
            Cause::Memory => f.write_str("out of memory"),
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
