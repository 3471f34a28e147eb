//! Errors of a perf map.

use std::fmt;
use std::path::Path;

use fallible::{OsError, PathText, Refused};

/// Why a perf map could not be opened, or was given up, and the file's path.
#[derive(Debug)]
pub struct Error {
    /// `None` if there was no memory for it.
    path: Option<PathText>,
    cause: Cause,
}

/// The cause of an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// An allocation failed.
    Memory,
    /// A system call failed.
    System {
        /// What was attempted, to follow "cannot".
        doing: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// The map's name belongs to a symlink, FIFO, device or directory.
    NotRegular,
    /// The existing file belongs to another user.
    Owner {
        /// The owner's user id.
        uid: u32,
    },
    /// The existing file has other names, too: appended lines would appear there.
    Linked,
    /// The existing file is writable by everybody, or by a group other than ours.
    Writable {
        /// The permission bits.
        mode: u32,
    },
    /// While the map was being opened, other files took its name, one after another.
    Contested,
    /// A line that we wrote is gone: the file was truncated or overwritten, as a writer without
    /// `O_APPEND` does.
    Damaged,
    /// The file was deleted or renamed, and another file has its name.
    Replaced,
    /// The file descriptor now belongs to another file: something in this process closed
    /// descriptors that were not its own.
    Descriptor,
    /// The file would exceed the process's `RLIMIT_FSIZE`. Writing would raise SIGXFSZ.
    SizeLimit,
    /// The process was forked while another thread was writing to the map.
    ForkedAmidWrite,
    /// A signal handler announced code while its own thread was writing to the map, or another
    /// thread was writing for seconds: a signal handler has stopped it there, or the disk has.
    Interrupted,
}

impl Error {
    pub(crate) fn new(path: &Path, cause: Cause) -> Self {
        Error { path: PathText::new(path), cause }
    }

    /// The map's path.
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
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Cause {
        move |errno| Cause::System { doing, error: errno.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "no perf map: {}: {}", path.as_path().display(), self.cause),
            None => write!(f, "no perf map: {}", self.cause),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::System { doing, error } => match OsError::of(error) {
                Some(error) => write!(f, "cannot {doing}: {error}"),
                None => write!(f, "cannot {doing}: {}", error.kind()),
            },
            Cause::Memory => f.write_str("out of memory"),
            Cause::NotRegular => f.write_str("exists and is no regular file"),
            Cause::Owner { uid } => write!(f, "exists and belongs to user {uid}"),
            Cause::Linked => f.write_str("exists and has several names"),
            Cause::Writable { mode } => {
                write!(f, "exists and others may write it (mode {mode:o})")
            }
            Cause::Contested => f.write_str("other files keep taking its name"),
            Cause::Damaged => f.write_str("another writer cut it short or wrote over it"),
            Cause::Replaced => f.write_str("another file has taken its name"),
            Cause::Descriptor => f.write_str("its descriptor was closed from outside"),
            Cause::SizeLimit => f.write_str("it would exceed the limit on file sizes (ulimit -f)"),
            Cause::ForkedAmidWrite => {
                f.write_str("the process was forked while another thread was writing it")
            }
            Cause::Interrupted => f.write_str("a thread was interrupted while it was writing it"),
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

/// Checked before the result of this attempt is written to the file: it may be incomplete.
pub(crate) fn not_refused() -> Result<(), Cause> {
    fallible::so_far().map_err(|Refused| Cause::Memory)
}
