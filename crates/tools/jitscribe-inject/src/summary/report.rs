//! The results of an injection.

use std::path::PathBuf;

use super::stack_counts::StackCounts;
use crate::Warning;
use crate::attribution::activity::Activities;
use crate::attribution::counts::Counts;
use crate::files::Kind;

/// The results. Sizes are in bytes, times in nanoseconds.
///
/// With the feature `serde` it can be serialized. Paths are converted to UTF-8, with U+FFFD for invalid bytes; warnings
/// become their texts.
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
    /// Number of events in the recording.
    pub events: u64,
    /// Samples by where they were taken.
    pub samples: Counts,
    /// Whether samples have copies of stacks. Code that is only on such stacks is not counted in `samples`.
    pub has_stack_copies: bool,
    /// Whether there is a trace of instructions. The code that it runs through is not counted in `samples`.
    pub has_trace: bool,
    /// The call stacks of the new recording; `None` if it has none, or they were not [counted](crate::Injector::count_stacks).
    pub stacks: Option<StackCounts>,
    /// The jitdumps and perf maps that were read.
    pub sources: Vec<SourceReport>,
    /// The images that were written.
    pub images: Vec<ImageReport>,
    /// Samples by what was done, in processes with known code: a heuristic. The callers on stacks that were copied take part only if stacks were
    /// [counted](crate::Injector::count_stacks).
    pub activities: Activities,
    /// The ten functions with the most samples, in descending order. All codes of a function count as one.
    pub top: Vec<TopFunction>,
    /// What was left out or corrected.
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
    /// Its format.
    pub kind: Kind,
    /// The process whose code it describes.
    pub pid: u32,
    /// Number of codes in it that are used.
    pub codes: usize,
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

/// A tier of a function.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TierSamples {
    /// Its name.
    pub tier: String,
    /// Number of samples in code of this tier.
    pub samples: u64,
}

/// A function with samples.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TopFunction {
    /// Its name, without the marks of tiers and without its place.
    pub name: String,
    /// Its file; empty if the name of its code does not have it.
    pub file: String,
    /// The line where it begins; 0 if it is not known.
    pub line: u32,
    /// The column where it begins; 0 if it is not known.
    pub column: u32,
    /// The name of its code with the most samples in the image's symbols, which perf shows.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub symbol: Vec<u8>,
    /// The same as text.
    #[cfg_attr(feature = "serde", serde(rename = "symbol"))]
    pub symbol_text: String,
    /// Number of samples in it.
    pub samples: u64,
    /// Number of samples in it or in what it called; a recursive function counts once a sample. `None` if the recording has
    /// no call chains, or copies of stacks that were not [counted](crate::Injector::count_stacks).
    pub inclusive: Option<u64>,
    /// The samples by tier, if the runtime tells tiers.
    pub tiers: Vec<TierSamples>,
    /// Whether the machine code of `symbol` is known, so that perf annotate can show assembly. Perf maps have no code.
    pub has_code: bool,
    /// Whether any of its code has source lines.
    pub has_lines: bool,
    /// Whether it is a runtime's interpreter.
    pub interprets: bool,
}

/// For `serialize_with`: paths, with U+FFFD for invalid UTF-8. serde would reject such a path, and with it the whole
/// report.
#[cfg(feature = "serde")]
fn lossy<P: Paths, S: serde::Serializer>(path: &P, to: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&path.text(), to)
}

/// A path, or none.
#[cfg(feature = "serde")]
trait Paths {
    /// The value to serialize.
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
