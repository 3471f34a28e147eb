//! Jitdumps and perf maps of recorded processes that cannot be used, and why.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::PathBuf;

use crate::Warning;
use crate::files::Kind;

/// Number of files that are collected.
const LARGEST_COUNT: usize = 4096;

/// Adds a file, unless there are too many.
pub(crate) fn add(files: &mut Vec<UnusableFile>, file: UnusableFile) {
    if files.len() < LARGEST_COUNT {
        files.push(file);
    }
}

/// A jitdump or perf map of a recorded process that cannot be used. The process had been asked to announce its code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableFile {
    /// The process.
    pub pid: u32,
    /// The format that it should have.
    pub kind: Kind,
    /// Its path.
    pub path: PathBuf,
    /// Why it cannot be used.
    pub why: Unusable,
}

/// Why a jitdump or perf map cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// The process mapped it, but it is not at that path.
    Missing,
    /// It has no bytes.
    Empty,
    /// The user who runs this may not read it.
    Denied {
        /// The system's error.
        cause: String,
    },
    /// It cannot be read for another reason.
    Unreadable {
        /// The cause.
        cause: String,
    },
    /// Its content has another format.
    OtherFormat,
    /// Its format is right, but it has no code.
    NoCode,
    /// It belongs to a user who is not related to the process.
    Untrusted {
        /// The file's owner.
        user: u32,
    },
}

impl From<&io::Error> for Unusable {
    fn from(error: &io::Error) -> Self {
        let cause = error.to_string();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { cause },
            _ => Self::Unreadable { cause },
        }
    }
}

/// The word for it in JSON.
impl Display for Unusable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Empty => "empty",
            Self::Denied { .. } => "denied",
            Self::Unreadable { .. } => "unreadable",
            Self::OtherFormat => "other-format",
            Self::NoCode => "no-code",
            Self::Untrusted { .. } => "untrusted",
        })
    }
}

impl UnusableFile {
    /// The warning about it. `comm` is the name of its process.
    pub(crate) fn warning(&self, comm: String) -> Warning {
        let Self { pid, kind, path, why } = self.clone();
        match why {
            Unusable::Missing => Warning::JitdumpMissing { path, pid, comm },
            Unusable::Empty => Warning::Empty { path },
            Unusable::Denied { cause } | Unusable::Unreadable { cause } => {
                Warning::Unreadable { path, cause }
            }
            Unusable::OtherFormat => Warning::NoJitdump { path },
            Unusable::NoCode => Warning::NoCode { path },
            Unusable::Untrusted { user } => Warning::Untrusted { path, kind, pid, user },
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for UnusableFile {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut file = to.serialize_struct("UnusableFile", 3)?;
        file.serialize_field("path", &self.path.to_string_lossy())?;
        file.serialize_field("kind", &self.kind)?;
        file.serialize_field("why", &self.why.to_string())?;
        file.end()
    }
}
