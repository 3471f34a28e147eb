//! Samples and what they stand for.

/// Number of samples, and their weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// With it as the innermost frame.
    pub own: u64,
    /// With it anywhere on the stack, once each.
    pub total: u64,
    /// The weight of those with it as the innermost frame.
    pub own_weight: u64,
    /// The weight of those with it anywhere on the stack.
    pub total_weight: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.own = self.own.saturating_add(other.own);
        self.total = self.total.saturating_add(other.total);
        self.own_weight = self.own_weight.saturating_add(other.own_weight);
        self.total_weight = self.total_weight.saturating_add(other.total_weight);
    }
}
