//! What is read of a file in which a runtime describes its code, and what is known of the file.

use serde::{Deserialize, Serialize};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FileKind {
    /// A jitdump. It has times and lines, so it is asked first.
    Jitdump,
    /// A perf map.
    PerfMap,
}

impl FileKind {
    /// Its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jitdump => "jitdump",
            Self::PerfMap => "perf-map",
        }
    }
}

/// Distinguishes a file from another one that replaced it. Inode numbers are used again, often at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The device of its file system.
    pub device: u64,
    /// The number of its inode.
    pub inode: u64,
    /// When it was created: seconds and nanoseconds; 0 if the file system does not know.
    pub created: (i64, u32),
}

/// What a file is like at the time of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStatus {
    /// Which file it is.
    pub identity: FileIdentity,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified: seconds and nanoseconds.
    pub modified: (i64, u32),
}

/// A file of a process that was read before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// What it is.
    pub kind: FileKind,
    /// Its path, as the process sees it.
    pub path: Vec<u8>,
    /// What it was like when it was last read.
    pub status: FileStatus,
    /// Where to continue reading.
    pub offset: u64,
    /// The last bytes before that, by which a file that was written again from its beginning is recognized.
    pub last: Vec<u8>,
    /// Whether there is nothing to be read in this file: it is none of its kind.
    pub is_ignored: bool,
}

/// What was found of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReading {
    /// What it is.
    pub kind: FileKind,
    /// Its path, as the process sees it.
    pub path: Vec<u8>,
    /// What was read; `None` if nothing has changed, or if the file is gone: what it had is true all the same.
    pub part: Option<FilePart>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart {
    /// What the file is like.
    pub status: FileStatus,
    /// Where the bytes were: 0, or where reading was to continue. If it is 0, the file is new, or was written again.
    pub from: u64,
    /// The bytes. They are not serialized.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl FilePart {
    /// Whether the file has more than was read.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.from.saturating_add(self.bytes.len() as u64) < self.status.size
    }
}
