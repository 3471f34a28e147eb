//! What is read of a recording.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use jitscribe_inject::{StackCounts, UnusableFile, Warning};
use profile::Profile;

use crate::recorded_code::RecordedCode;

/// A recording that was read.
#[non_exhaustive]
pub struct RecordedProfile<'f> {
    /// What was recorded.
    pub profile: Profile,
    /// The machine code, its lines, and sources.
    pub code: RecordedCode<'f>,
    /// How many call stacks are whole as perf shows them. `None` if the recording has none, or they were [not counted](crate::Options::count_stacks).
    pub stacks: Option<StackCounts>,
    /// The files that each sampled process has mapped, for up to 64 processes.
    pub mapped_files: BTreeMap<u32, Vec<PathBuf>>,
    /// Jitdumps and perf maps of the recorded processes that cannot be used.
    pub unusable: Vec<UnusableFile>,
    /// What was left out or put right.
    pub warnings: Vec<Warning>,
}

impl fmt::Debug for RecordedProfile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedProfile")
            .field("about", &self.profile.about)
            .finish_non_exhaustive()
    }
}
