//! Which codes are on the stacks of samples together.
//!
//! A function may have several codes on one stack, by recursion or because it was compiled again, and counts once a sample. Which
//! codes are one function is known only when their names are, after the samples were read. So the codes of each stack are kept, without order or repetition, and
//! equal ones once.

use std::hash::BuildHasher as _;

use code_timeline::CodeId;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// The codes on stacks, and how many samples have them.
#[derive(Debug, Default)]
pub struct StackSets {
    sets: HashTable<StackSet>,
    /// The codes of all sets, one set behind the other.
    codes: Vec<u32>,
    /// The codes of the current sample.
    current: Vec<u32>,
    /// The code that the current sample is in.
    own: Option<CodeId>,
    has_stacks: bool,
}

/// In a recording of deep stacks nearly each sample has a set of its own, so that neither an allocation nor a second hash is spent on one.
#[derive(Debug)]
struct StackSet {
    hash: u64,
    start: usize,
    count: usize,
    own: Option<CodeId>,
    samples: u64,
}

impl StackSet {
    fn codes<'a>(&self, codes: &'a [u32]) -> &'a [u32] {
        let rest = codes.get(self.start..).unwrap_or_default();
        rest.get(..self.count).unwrap_or_default()
    }
}

impl StackSets {
    /// Adds a code to the stack of the current sample.
    pub fn add(&mut self, code: CodeId) {
        self.current.push(code.0);
    }

    /// Adds the code that the current sample is in.
    pub fn add_own(&mut self, code: CodeId) {
        self.add(code);
        self.own = Some(code);
    }

    /// Ends the current sample. `has_stack` tells whether its callers are known.
    pub fn end_sample(&mut self, has_stack: bool) {
        self.has_stacks |= has_stack;
        if self.current.is_empty() {
            return;
        }
        self.current.sort_unstable();
        self.current.dedup();
        let own = self.own.take();
        let hash = FxBuildHasher.hash_one((own, &self.current[..]));
        let (codes, current) = (&mut self.codes, &self.current);
        let is_same =
            |set: &StackSet| set.hash == hash && set.own == own && set.codes(codes) == current;
        if let Some(set) = self.sets.find_mut(hash, is_same) {
            set.samples += 1;
        } else {
            let (start, count) = (codes.len(), current.len());
            codes.extend(current);
            let set = StackSet { hash, start, count, own, samples: 1 };
            self.sets.insert_unique(hash, set, |set| set.hash);
        }
        self.current.clear();
    }

    /// Whether callers are known of any sample.
    pub fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// The codes on stacks, each set once: with the code that its samples are in, and their number.
    pub fn sets(
        &self,
    ) -> impl Iterator<Item = (impl Iterator<Item = CodeId>, Option<CodeId>, u64)> {
        self.sets.iter().map(|set| {
            let codes = set.codes(&self.codes);
            (codes.iter().map(|&code| CodeId(code)), set.own, set.samples)
        })
    }
}
