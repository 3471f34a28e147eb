//! The tools of valgrind.

/// A tool of valgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// Execution counts and callers, by function, line and instruction
    Callgrind,
    /// Invalid heap accesses and memory leaks
    Memcheck,
    /// Heap usage by call stack, over time
    Massif,
    /// Heap allocations and how they are used
    Dhat,
    /// Execution counts, by function and line
    Cachegrind,
}

impl Tool {
    pub fn name(self) -> &'static str {
        match self {
            Self::Callgrind => "callgrind",
            Self::Memcheck => "memcheck",
            Self::Massif => "massif",
            Self::Dhat => "dhat",
            Self::Cachegrind => "cachegrind",
        }
    }
}
