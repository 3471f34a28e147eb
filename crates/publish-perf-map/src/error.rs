//! Why a perf map cannot be kept.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why the perf map could not be opened, or why it was given up, and which file it was.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    cause: Cause,
}

/// What is wrong with the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A system call failed.
    System {
        /// What was being done, as in "cannot …".
        doing: &'static str,
        /// What the kernel said.
        error: std::io::Error,
    },
    /// A symlink, FIFO, device or folder has the map's name.
    NotRegular,
    /// The file of that name belongs to another user.
    Owner {
        /// The owner's user id.
        uid: u32,
    },
    /// The file of that name has other names too: what we append would show there.
    Linked,
    /// The file of that name may be written by everybody, or by a group other than ours.
    Writable {
        /// The permission bits.
        mode: u32,
    },
    /// Other files took the map's name, one after another, while it was being opened.
    Contested,
    /// A line that we wrote is not there any more: the file was cut short or written over,
    /// which a writer without `O_APPEND` does.
    Damaged,
    /// The file was deleted or renamed, and another one has its name.
    Replaced,
    /// The file descriptor belongs to another file by now: something in this process closed
    /// descriptors that are not its own.
    Descriptor,
    /// The file would outgrow the process's `RLIMIT_FSIZE`. Trying would raise SIGXFSZ.
    SizeLimit,
    /// The process was forked while another thread was writing the map.
    ForkedAmidWrite,
}

impl Error {
    pub(crate) fn new(path: &Path, cause: Cause) -> Self {
        Error { path: path.to_owned(), cause }
    }

    /// The map's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
}

impl Cause {
    /// For `map_err`: names what was being done when the kernel refused.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Cause {
        move |errno| Cause::System { doing, error: errno.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no perf map: {}: {}", self.path.display(), self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::System { doing, error } => write!(f, "cannot {doing}: {error}"),
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
