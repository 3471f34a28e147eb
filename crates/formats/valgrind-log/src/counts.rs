//! The result of a rewrite.

/// Counts of what a file contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames of stacks, or functions in a table.
    pub frames: u64,
    /// Of these, addresses without a name.
    pub unknown: u64,
    /// Of these, those that now have a name.
    pub named: u64,
    /// Of these, those where other code was at another time, to which the address may refer.
    pub doubtful: u64,
    /// Call stacks with a frame that was named.
    pub stacks: u64,
    /// Of these, stacks that do not lead out of JIT-compiled code: a caller is unknown, or is missing although the
    /// stack is below the frame limit.
    pub broken: u64,
    /// Loss records that are identical to an earlier one, now that addresses have names.
    pub repeated: u64,
}
