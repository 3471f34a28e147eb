//! Errors, and their positions.

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
    /// The bytes are not valid in a recording.
    #[error("malformed recording at offset {offset:#x}: {cause}")]
    Malformed {
        /// Offset in the file of the invalid structure.
        offset: u64,
        /// What is wrong with it.
        cause: Cause,
    },
    /// An event passed to the writer is not exactly one complete event.
    #[error("not exactly one event: {0} bytes given, but its header has another size")]
    NotAnEvent(usize),
    /// The features of a pipe precede its events, which have already begun.
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
    #[error("perf.data format older than version 2")]
    OldFormat,
    /// The header has a size that no version of the format has.
    #[error("header of {0} bytes")]
    HeaderSize(u64),
    /// An attribute smaller than the smallest `perf_event_attr`, or larger than an event can be.
    #[error("event attribute of {0} bytes")]
    AttrSize(u64),
    /// A section is outside the file.
    #[error("section extends past the end of the file")]
    SectionOutside,
    /// The id lists of all attributes together are larger than the file.
    #[error("sample ids overlap")]
    IdsOverlap,
    /// An event's size is smaller than its own header.
    #[error("event of {0} bytes")]
    EventSize(u16),
    /// An event ends before the fields that its type and attribute require.
    #[error("event ends within its fields")]
    EventTooShort,
    /// A compressed record does not decompress.
    #[error("damaged zstd data")]
    Zstd,
    /// Compressed records decompress to more than four thousand times their size.
    #[error("zstd data expands to more than four thousand times its size")]
    ZstdBomb,
    /// An event with a payload is inside compressed data, where no recorder puts it.
    #[error("payload inside compressed data")]
    PayloadInCompressed,
}

/// How the events of a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not reached yet.
    #[default]
    NotReached,
    /// The last event ended where the header (of a pipe: the stream) ends.
    Complete,
    /// The recording was cut off, or its recorder was killed. All complete events were returned.
    CutOff {
        /// Which file: 0, or for a directory the index of `data.N` plus one.
        file: u32,
        /// Offset in that file behind the last complete event.
        offset: u64,
    },
    /// The bytes are invalid from some point on. All events before it were returned.
    Damaged {
        /// Which file: 0, or for a directory the index of `data.N` plus one.
        file: u32,
        /// Offset in that file of the damaged event.
        offset: u64,
        /// What is wrong there.
        cause: Cause,
    },
}
