//! What the samples say about each code.

use std::collections::HashMap;

use code_timeline::{AddressSpaceId, CodeId, Usage};
use rustc_hash::FxBuildHasher;

use crate::codes::code_table::CodeTable;
use crate::codes::lookup::Register;

/// What the samples say about each code, by the address space whose timeline it is in.
#[derive(Debug, Default)]
pub struct SampledCodes {
    list: Vec<SampledCode>,
    /// By code: the index in the list, plus 1, for the first address space in which it was seen. Most codes are in one
    /// address space only. Parts that are never written take no memory.
    first: Vec<u32>,
    others: HashMap<(AddressSpaceId, CodeId), SampledId, FxBuildHasher>,
}

/// What the samples say about one code.
#[derive(Clone, Copy, Debug)]
struct SampledCode {
    space: AddressSpaceId,
    code: CodeId,
    /// When it was seen running, at the top of a call stack or below.
    usage: Usage,
    /// Number of samples in it.
    hits: u64,
    /// Whether a sample has it, at the top of its call stack or below. What is known of a trace is no sample.
    is_seen: bool,
}

/// The index of a code in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledId(u32);

impl SampledCodes {
    /// Creates a table for code numbers below `codes`.
    pub fn new(codes: usize) -> Self {
        Self { first: vec![0; codes], ..Self::default() }
    }

    /// The index of `code`. If it is new, it was first seen running at `time`.
    pub fn id(&mut self, space: AddressSpaceId, code: CodeId, time: u64) -> SampledId {
        if let Some(id) = self.find(space, code) {
            return id;
        }
        let id = SampledId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        self.list.push(SampledCode {
            space,
            code,
            usage: Usage::once(time),
            hits: 0,
            is_seen: false,
        });
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

    /// Records that it was seen running at `time`, and at the top of the stack in `hits` more samples.
    pub fn again(&mut self, id: SampledId, time: u64, hits: u64) {
        if let Some(sampled) = self.list.get_mut(id.0 as usize) {
            sampled.usage.again(time);
            sampled.hits += hits;
            sampled.is_seen = true;
        }
    }

    /// Records that all code may have run as long as it lived, as in a trace of instructions.
    pub fn add_all(&mut self, table: &CodeTable<'_>) {
        for (space, timeline) in table.history.timelines() {
            for piece in timeline.pieces() {
                let id = self.id(space, piece.code, piece.since);
                if let Some(sampled) = self.list.get_mut(id.0 as usize) {
                    sampled.usage.again(piece.since);
                    sampled.usage.again(piece.until - 1);
                }
            }
        }
    }

    /// When `code` was seen running in `space`, if it was.
    pub fn usage(&self, space: AddressSpaceId, code: CodeId) -> Option<Usage> {
        let SampledId(place) = self.find(space, code)?;
        Some(self.list.get(place as usize)?.usage)
    }

    /// Makes space for code numbers below `codes`.
    pub fn grow(&mut self, codes: usize) {
        self.first.resize(codes.max(self.first.len()), 0);
    }

    /// The codes in which samples were taken, at the top of a call stack or below.
    pub fn all(&self) -> impl Iterator<Item = (AddressSpaceId, CodeId, Usage)> {
        self.list.iter().map(|sampled| (sampled.space, sampled.code, sampled.usage))
    }

    /// The codes that samples have, at the top of a call stack or below.
    pub fn seen(&self) -> impl Iterator<Item = CodeId> {
        self.list.iter().filter(|sampled| sampled.is_seen).map(|sampled| sampled.code)
    }

    /// The codes in which samples were taken, with their number. Code that several address spaces ran appears once for
    /// each of their timelines.
    pub fn hits(&self) -> impl Iterator<Item = (CodeId, u64)> {
        self.list.iter().map(|sampled| (sampled.code, sampled.hits)).filter(|&(_, hits)| hits > 0)
    }
}

impl Register for SampledCodes {
    type Mark = SampledId;

    fn mark(&mut self, owner: AddressSpaceId, code: CodeId, time: u64) -> SampledId {
        self.id(owner, code, time)
    }
}
