//! How many call stacks of a recording are whole.

/// How call stacks were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Stacks {
    /// The kernel walked them.
    Walked,
    /// They were copied, and are unwound when the recording is read.
    Copied,
}

/// The call stacks of a recording.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StackCounts {
    /// How they were recorded.
    pub recorded: Stacks,
    /// Number of samples with a stack of user code.
    pub stacks: u64,
    /// Those that reach the bottom: the start of the program or of a thread.
    pub whole: u64,
    /// Why the others end.
    pub ends: StackEnds,
    /// Size of the copies in bytes; 0 if there are none.
    pub copied: u64,
}

/// Why stacks end that are not whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StackEnds {
    /// The stack is deeper than what was copied of it.
    pub deeper_than_copy: u64,
    /// The last frame is in code without unwind tables, whose frame pointer leads to no other frame.
    pub no_tables: u64,
    /// A stack in other memory is needed: of a runtime that has stacks of its own.
    pub other_memory: u64,
    /// For other reasons. All stacks that were walked and are not whole are counted here.
    pub other: u64,
}
