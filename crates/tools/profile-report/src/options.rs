//! What to put into a report.

/// What to put into a report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The most instructions of all codes together. The code with the most samples comes first.
    pub most_instructions: usize,
    /// The most bytes of all source files together.
    pub most_source_bytes: usize,
    /// What to say of code without a name, a line each: which memory was sampled, and what makes its runtime announce its code.
    pub unnamed: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { most_instructions: 500_000, most_source_bytes: 32 << 20, unnamed: Vec::new() }
    }
}
