//! What was found in a file, and done to it.

/// Counts of what a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames of stacks, or functions of a table.
    pub frames: u64,
    /// Of these, addresses without a name.
    pub unknown: u64,
    /// Of these, those that have a name now.
    pub named: u64,
    /// Of these, those where other code was at another time, and may have been meant.
    pub doubtful: u64,
    /// Call stacks with a frame that was named.
    pub stacks: u64,
    /// Of these, stacks that do not lead out of jitted code: a caller is unknown, or missing though
    /// there was room for more.
    pub broken: u64,
    /// Loss records that say the same as an earlier one, now that addresses have names.
    pub repeated: u64,
}
