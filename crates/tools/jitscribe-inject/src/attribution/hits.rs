//! The samples of each code, by its number.

use code_timeline::CodeId;

use super::SampleAttribution;

/// Number of samples in each code, and which codes were on a stack.
#[derive(Debug)]
pub struct Hits {
    in_code: Vec<u64>,
    on_stack: Vec<bool>,
}

impl Hits {
    /// Counts the samples by code, for `codes` codes.
    pub fn count(attribution: &SampleAttribution, codes: usize) -> Self {
        let mut all = Self { in_code: vec![0; codes], on_stack: vec![false; codes] };
        for (code, hits) in attribution.hits() {
            all.in_code[code.index()] += hits;
        }
        for code in attribution.seen() {
            all.on_stack[code.index()] = true;
        }
        all
    }

    /// The number of samples in a code.
    pub fn in_code(&self, code: CodeId) -> u64 {
        self.in_code.get(code.index()).copied().unwrap_or(0)
    }

    /// Whether a code was sampled, or is on the stack of a sample.
    pub fn is_seen(&self, code: CodeId) -> bool {
        self.in_code(code) > 0 || self.on_stack.get(code.index()).copied().unwrap_or(false)
    }

    /// Number of codes; all code numbers are below it.
    pub fn len(&self) -> usize {
        self.in_code.len()
    }

    /// The codes with samples.
    pub fn codes(&self) -> impl Iterator<Item = CodeId> {
        self.seen().filter(|&code| self.in_code(code) > 0)
    }

    /// The codes that were sampled, or are on the stacks of samples.
    pub fn seen(&self) -> impl Iterator<Item = CodeId> {
        let codes = (0..self.len()).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        codes.map(CodeId).filter(|&code| self.is_seen(code))
    }
}
