//! What a rewriting did.

/// What was found in a profile, and what became of it. Costs have an entry an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The names of the events.
    pub events: Vec<String>,
    /// What the profile says to be all of the cost: the sum of its lines `totals:`.
    pub total: Vec<u64>,
    /// Self cost in code that callgrind did not know.
    pub unknown: Vec<u64>,
    /// How much of that has a function now.
    pub named: Vec<u64>,
    /// Contexts of unknown code that got a name: callgrind has one for each address that is called.
    pub contexts: usize,
    /// Functions that were named.
    pub functions: usize,
    /// Jumps that became calls, as they go to another function's beginning: how often they were taken.
    pub entered_by_jump: u64,
    /// Parts of the profile.
    pub parts: u64,
    /// Whether it tells instructions apart (`--dump-instr=yes`). Else whole contexts are renamed and that is all.
    pub has_instructions: bool,
    /// Whether it tells of jumps (`--collect-jumps=yes`). Else who jumped to a function is a guess.
    pub has_jumps: bool,
    /// Whether its last line had no end: it was cut off.
    pub is_cut_off: bool,
}
