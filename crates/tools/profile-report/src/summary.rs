//! What is in a report.

/// What is in a report that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of samples.
    pub samples: usize,
    /// Number of codes with their assembly.
    pub listings: usize,
    /// Number of sampled codes that are left out, as there are too many instructions.
    pub listings_left_out: usize,
    /// Number of sampled codes without known bytes, or of a machine that cannot be disassembled.
    pub listings_unknown: usize,
    /// Number of source files.
    pub sources: usize,
    /// Number of sampled source files that are left out, as there is too much text.
    pub sources_left_out: usize,
    /// Number of sampled source files that were not found.
    pub sources_unknown: usize,
    /// Size of the file.
    pub bytes: u64,
}
