//! What is read of a recording.

use std::fmt;

use jitscribe_inject::Warning;
use profile::Profile;

use crate::recorded_code::RecordedCode;

/// A recording that was read.
#[non_exhaustive]
pub struct RecordedProfile<'f> {
    /// What was recorded.
    pub profile: Profile,
    /// The machine code, its lines, and sources.
    pub code: RecordedCode<'f>,
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
