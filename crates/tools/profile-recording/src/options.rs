//! How a recording is read.

use jitscribe_inject::files::{PlainFiles, SourceFiles};
use jitscribe_inject::{Guess, SearchPaths, SourceOptions};

/// How a recording is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options<'f> {
    /// How to open the files that the recording names.
    pub files: &'f dyn SourceFiles,
    /// Where to look for the dumps and perf maps of a recording that has no images yet. By default, in the recording's folder and in the places
    /// that the recording names.
    pub paths: Option<SearchPaths>,
    /// Where to look for the sources of generated code, for a recording that has no images yet.
    pub sources: SourceOptions,
    /// How to unwind where there are no unwind tables.
    pub guess: Guess,
    /// Whether to count how many call stacks are whole. Then [`guess`](Self::guess) must be [`Guess::FramePointer`].
    pub count_stacks: bool,
    /// Whether to look for lines and inlined calls.
    pub lines: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            files: &PlainFiles,
            paths: None,
            sources: SourceOptions::default(),
            guess: Guess::FramePointer,
            count_stacks: false,
            lines: true,
        }
    }
}
