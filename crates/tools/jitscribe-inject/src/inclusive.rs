//! Which codes are on the stacks of samples together.
//!
//! A function may have several codes on one stack, by recursion or because it was compiled again, and counts once a sample. Which
//! codes are one function is known only when their names are, after the samples were read. So the codes of each stack are kept, without order or repetition, and
//! equal ones once.

use std::collections::HashMap;

use code_timeline::CodeId;
use rustc_hash::FxBuildHasher;

/// The codes on stacks, and how many samples have them.
#[derive(Debug, Default)]
pub struct StackSets {
    sets: HashMap<Box<[u32]>, u64, FxBuildHasher>,
    /// The codes of the current sample.
    current: Vec<u32>,
    has_stacks: bool,
}

impl StackSets {
    /// Adds a code to the stack of the current sample.
    pub fn add(&mut self, code: CodeId) {
        self.current.push(code.0);
    }

    /// Ends the current sample. `has_stack` tells whether its callers are known.
    pub fn end_sample(&mut self, has_stack: bool) {
        self.has_stacks |= has_stack;
        if self.current.is_empty() {
            return;
        }
        self.current.sort_unstable();
        self.current.dedup();
        if let Some(count) = self.sets.get_mut(&self.current[..]) {
            *count += 1;
        } else {
            self.sets.insert(self.current.as_slice().into(), 1);
        }
        self.current.clear();
    }

    /// Whether callers are known of any sample.
    pub fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// The codes on stacks, each set once, and how many samples have it.
    pub fn sets(&self) -> impl Iterator<Item = (impl Iterator<Item = CodeId>, u64)> {
        self.sets.iter().map(|(codes, count)| (codes.iter().map(|&code| CodeId(code)), *count))
    }
}
