//! What can go wrong, and where.

use std::io;

/// Why a recording could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a read.
    #[error("cannot read the recording: {0}")]
    Read(#[source] io::Error),
    /// The operating system refused a write.
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    /// The bytes are not what a recording may hold.
    #[error("malformed recording at offset {offset:#x}: {cause}")]
    Malformed {
        /// Offset in the file of the structure that is wrong.
        offset: u64,
        /// What is wrong with it.
        cause: Cause,
    },
    /// An event handed to the writer is not one whole event.
    #[error("not one whole event: {0} bytes given, its header says otherwise")]
    NotAnEvent(usize),
    /// The features of a pipe stand in front of its events, which have begun.
    #[error("features of a pipe cannot change once its events have begun")]
    FeaturesWritten,
}

impl Error {
    pub(crate) fn malformed(offset: u64, cause: Cause) -> Self {
        Self::Malformed { offset, cause }
    }
}

/// What is wrong with a piece of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The file does not begin with `PERFILE2` in either byte order.
    #[error("no perf.data magic")]
    Magic,
    /// The format of Linux 2.6.31, which perf itself has not written since.
    #[error("the perf.data format before version 2")]
    OldFormat,
    /// The header says a size that no version of the format has.
    #[error("header of {0} bytes")]
    HeaderSize(u64),
    /// An attribute smaller than the smallest `perf_event_attr`, or larger than an event may be.
    #[error("event attribute of {0} bytes")]
    AttrSize(u64),
    /// A section lies outside of the file.
    #[error("section reaches past the end of the file")]
    SectionOutside,
    /// The id lists of the attributes together are larger than the file.
    #[error("sample ids overlap")]
    IdsOverlap,
    /// An event's size is smaller than its own header.
    #[error("event of {0} bytes")]
    EventSize(u16),
    /// An event ends before the fields its type and attribute promise.
    #[error("event ends amid its fields")]
    EventTooShort,
    /// A compressed record does not decompress.
    #[error("damaged zstd data")]
    Zstd,
    /// An event with a payload stands inside of compressed data, where no recorder puts it.
    #[error("payload inside of compressed data")]
    PayloadInCompressed,
}

/// How the events of a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not reached yet.
    #[default]
    NotReached,
    /// The last event ended where the header (of a pipe: the stream) says.
    Complete,
    /// The recording was cut off, or its recorder was killed. All whole events were handed out.
    CutOff {
        /// Which file: 0, or for a directory the index of `data.N` plus one.
        file: u32,
        /// Offset in that file behind the last whole event.
        offset: u64,
    },
    /// The bytes stop making sense. All events before were handed out.
    Damaged {
        /// Which file: 0, or for a directory the index of `data.N` plus one.
        file: u32,
        /// Offset in that file of the damaged event.
        offset: u64,
        /// What is wrong there.
        cause: Cause,
    },
}
