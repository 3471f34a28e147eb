//! The results of an injection.

use std::path::PathBuf;

use crate::Warning;
use crate::attribution::counts::Counts;
use crate::codes::unusable::UnusableFile;
use crate::files::Kind;

/// The results. Sizes are in bytes, times in nanoseconds.
///
/// With the feature `serde` its parts can be serialized. Paths are converted to UTF-8, with U+FFFD for invalid bytes; warnings
/// become their texts.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The recording that was read.
    pub input: PathBuf,
    /// The recording that was written; `None` for a stream.
    pub output: Option<PathBuf>,
    /// Number of events in the recording.
    pub events: u64,
    /// Samples by where they were taken.
    pub samples: Counts,
    /// Whether samples have copies of stacks. Code that is only on such stacks is not counted in `samples`.
    pub has_stack_copies: bool,
    /// Whether there is a trace of instructions. The code that it runs through is not counted in `samples`.
    pub has_trace: bool,
    /// The jitdumps and perf maps that were read.
    pub sources: Vec<SourceReport>,
    /// The images that were written.
    pub images: Vec<ImageReport>,
    /// The files that were gone while they were recorded, where they are kept. The injector leaves this empty: the caller has kept them.
    pub kept: Vec<PathBuf>,
    /// Processes with samples in memory that no source describes, most samples first, up to 16. These samples count as inferred or unnamed.
    pub unnamed: Vec<UnnamedProcess>,
    /// What was left out or corrected.
    pub warnings: Vec<Warning>,
}

/// A process with samples in memory that no source describes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct UnnamedProcess {
    /// Its process id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Number of such samples.
    pub samples: u64,
    /// Number of mappings with such samples.
    pub mappings: usize,
    /// The four mappings with the most of them.
    pub memory: Vec<UnnamedMemory>,
    /// The first eight of its jitdumps and perf maps that cannot be used.
    pub unusable: Vec<UnusableFile>,
    /// The files that it mapped, by which its runtime can be recognized.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub files: Vec<PathBuf>,
}

/// A mapping with samples that no source describes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct UnnamedMemory {
    /// The kernel's or perf's name for it (`//anon`, `/memfd:x`); empty if no mapping was recorded there.
    pub name: String,
    /// Its first address.
    pub start: u64,
    /// The end of its addresses.
    pub end: u64,
    /// The lowest sampled address.
    pub first: u64,
    /// The highest sampled address.
    pub last: u64,
    /// Number of such samples.
    pub samples: u64,
}

/// A jitdump or a perf map that was read.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SourceReport {
    /// Its path.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub path: PathBuf,
    /// Its format.
    pub kind: Kind,
    /// The process whose code it describes.
    pub pid: u32,
    /// Number of codes in it that are used.
    pub codes: usize,
    /// The lowest address of these codes; 0 if there are none.
    pub start: u64,
    /// The highest end of these codes; 0 if there are none.
    pub end: u64,
    /// The offset that was added to its times to convert them to the recording's clock, in nanoseconds.
    pub clock_offset_ns: i64,
    /// Number of codes whose inlined calls are from V8's code log.
    pub codes_in_v8_log: usize,
}

/// An image that was written: an object file made of code.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ImageReport {
    /// Its path.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub path: PathBuf,
    /// The process whose code it shows.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub pid: u32,
    /// Its size in bytes, including holes.
    pub size: u64,
    /// Its build-id, in hexadecimal.
    pub build_id: String,
}

/// For `serialize_with`: a path, with U+FFFD for invalid UTF-8. serde would reject such a path, and with it the whole
/// report.
#[cfg(feature = "serde")]
fn lossy<S: serde::Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&path.to_string_lossy(), to)
}
