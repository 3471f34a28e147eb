//! Samples by where they were taken.

/// Samples by where they were taken.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// All samples.
    pub samples: u64,
    /// In code that a jitdump or a perf map describes.
    pub named: u64,
    /// Of these, those that perf names without images, from a perf map where perf looks for it.
    pub named_before: u64,
    /// In memory that no source describes, with a name that was concluded from what is near it or in it: see the table of
    /// inferred names in `docs/inferred-names.md`.
    pub inferred: u64,
    /// In memory that no file backs, where no code is known, and no name could be inferred.
    pub unnamed: u64,
    /// Elsewhere, with known code on the call stack. An interpreter that compiles only trampolines (CPython's) has all of
    /// its samples here.
    pub through: u64,
}

impl Counts {
    /// Samples in jitted code, named or not.
    pub fn jitted(&self) -> u64 {
        self.named + self.inferred + self.unnamed
    }
}
