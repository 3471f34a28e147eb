//! What the samples say about each code.

use std::collections::HashMap;

use code_timeline::{AddressSpaceId, CodeId, Usage};
use rustc_hash::FxBuildHasher;

/// What the samples say of each code, by the life in whose timeline it stands.
#[derive(Debug, Default)]
pub struct SampledCodes {
    list: Vec<SampledCode>,
    /// By code: the place in the list, from 1, of the first life that was seen to have it. Most
    /// codes are known to one life only. Never touched, it takes no memory.
    first: Vec<u32>,
    others: HashMap<(AddressSpaceId, CodeId), SampledId, FxBuildHasher>,
}

/// What the samples say about one code.
#[derive(Clone, Copy, Debug)]
struct SampledCode {
    space: AddressSpaceId,
    code: CodeId,
    /// When it was seen running, on top of a stack or within it.
    usage: Usage,
    /// How many samples were taken in it.
    hits: u64,
}

/// The place of a code in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledId(u32);

impl SampledCodes {
    /// For numbers of code below `codes`.
    pub fn new(codes: usize) -> Self {
        Self { first: vec![0; codes], ..Self::default() }
    }

    /// The place of `code`, which was seen running at `time` if it was never seen before.
    pub fn id(&mut self, space: AddressSpaceId, code: CodeId, time: u64) -> SampledId {
        if let Some(id) = self.find(space, code) {
            return id;
        }
        let id = SampledId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        self.list.push(SampledCode { space, code, usage: Usage::once(time), hits: 0 });
        match self.first.get_mut(code.index()) {
            Some(first @ 0) => *first = id.0.saturating_add(1),
            _ => {
                self.others.insert((space, code), id);
            }
        }
        id
    }

    fn find(&self, space: AddressSpaceId, code: CodeId) -> Option<SampledId> {
        let first = SampledId(self.first.get(code.index())?.checked_sub(1)?);
        if self.list.get(first.0 as usize)?.space == space {
            return Some(first);
        }
        self.others.get(&(space, code)).copied()
    }

    /// It was seen running at `time`; in `hits` samples more, on top of the stack.
    pub fn again(&mut self, id: SampledId, time: u64, hits: u64) {
        if let Some(sampled) = self.list.get_mut(id.0 as usize) {
            sampled.usage.again(time);
            sampled.hits += hits;
        }
    }

    /// When `code` was seen running in `space`, if it was.
    pub fn usage(&self, space: AddressSpaceId, code: CodeId) -> Option<Usage> {
        let SampledId(place) = self.find(space, code)?;
        Some(self.list.get(place as usize)?.usage)
    }

    /// In which code samples were taken, and how many; code that several lives ran comes once for
    /// each of their timelines.
    pub fn hits(&self) -> impl Iterator<Item = (CodeId, u64)> {
        self.list.iter().map(|sampled| (sampled.code, sampled.hits)).filter(|&(_, hits)| hits > 0)
    }
}
