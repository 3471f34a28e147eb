//! What an injection did.

use std::path::PathBuf;

use super::counts::Counts;
use crate::Warning;
use crate::files::Kind;

/// What was done. Sizes are bytes, times nanoseconds.
///
/// With the feature `serde` it can be serialized. Paths that are not UTF-8 have U+FFFD in the place of what is not, and
/// warnings are their texts.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Report {
    /// The recording that was read.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub input: PathBuf,
    /// The recording that was written; `None` for a stream.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub output: Option<PathBuf>,
    /// How many events the recording has.
    pub events: u64,
    /// Samples by where they were taken.
    pub samples: Counts,
    /// The jitdumps and perf maps that were read.
    pub sources: Vec<SourceReport>,
    /// The images that were written.
    pub images: Vec<ImageReport>,
    /// The ten functions with most samples, the first with most.
    pub top: Vec<TopFunction>,
    /// What was left out or put right.
    pub warnings: Vec<Warning>,
}

/// A jitdump or a perf map that was read.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SourceReport {
    /// Its path.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The process whose code it describes.
    pub pid: u32,
    /// How many codes it has that are used.
    pub codes: usize,
    /// What was added to its times to convert them to the recording's clock, in nanoseconds.
    pub clock_offset_ns: i64,
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
    /// Its size in bytes; holes count.
    pub size: u64,
    /// Its build-id, in hexadecimal.
    pub build_id: String,
}

/// A function with samples.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TopFunction {
    /// Its name.
    pub name: String,
    /// Its name in the image's symbols, which perf shows.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub symbol: Vec<u8>,
    /// How many samples were taken in it.
    pub samples: u64,
    /// Whether its machine code is known, so that perf annotate has assembly to show: a perf map has no code.
    pub has_code: bool,
}

/// For `serialize_with`: paths, with U+FFFD for what is not UTF-8. As they are, they would be refused then, and with them
/// all that is to be serialized.
#[cfg(feature = "serde")]
fn lossy<P: Paths, S: serde::Serializer>(path: &P, to: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&path.text(), to)
}

/// A path, or none.
#[cfg(feature = "serde")]
trait Paths {
    /// What is serialized.
    fn text(&self) -> impl serde::Serialize;
}

#[cfg(feature = "serde")]
impl Paths for PathBuf {
    fn text(&self) -> impl serde::Serialize {
        self.to_string_lossy()
    }
}

#[cfg(feature = "serde")]
impl Paths for Option<PathBuf> {
    fn text(&self) -> impl serde::Serialize {
        self.as_ref().map(|path| path.to_string_lossy())
    }
}
