//! Codes that copied stacks refer to.
//!
//! Stacks that were copied are unwound by the images' tables, so their callers are not known yet when the images are planned. But each caller's return address is a word of the
//! copy. Words of calls that have returned since are found too: they refer to code that was there at that time, so an image that shows it is right as well.

use std::ops::Range;

use code_timeline::{AddressSpaceId, CodeId, Usage, ranges};
use jit_code::Kind;
use perf_data::{Endian, Sample};

use super::sampled::SampledCodes;
use crate::codes::code_table::CodeTable;
use crate::codes::lookup::{LookupCache, Occupant, Process};
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// Codes with smaller gaps than this between them are one range, so that there are few.
const GAP: u64 = 1 << 16;

/// Finds the codes that copied stacks refer to.
pub struct StackWords<'a> {
    /// Where each address space has code.
    code: Vec<Vec<Range<u64>>>,
    cache: LookupCache<'a, SampledCodes>,
    found: SampledCodes,
}

impl<'a> StackWords<'a> {
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        table: &'a CodeTable<'a>,
    ) -> Self {
        let mut code = Vec::new();
        for (space, timeline) in table.history.timelines() {
            // A method's bytecode is not returned to.
            let runs = timeline.pieces().iter().filter(|piece| is_returned_to(table, piece.code));
            let runs = runs.map(|piece| piece.range.clone());
            code.resize(code.len().max(space.index() + 1), Vec::new());
            code[space.index()] = ranges::merge(runs, |gap| gap.end - gap.start < GAP);
        }
        let cache = LookupCache::new(index, spaces, table, &|_| false);
        let found = SampledCodes::new(table.history.len());
        Self { code, cache, found }
    }

    /// Looks at the copy of the stack in a sample of `process` at `time`.
    pub fn add(&mut self, process: &Process<'_>, time: u64, sample: &Sample<'_>, endian: Endian) {
        let Self { code, cache, found } = self;
        let code = process.owner().and_then(|owner| code.get(owner.index()));
        let Some(code @ [first, .., last] | code @ [first @ last]) = code.map(Vec::as_slice) else {
            return;
        };
        let all = first.start..last.end;
        for word in sample.user_stack.as_chunks().0 {
            let word = match endian {
                Endian::Little => u64::from_le_bytes(*word),
                Endian::Big => u64::from_be_bytes(*word),
            };
            // The call is before the address that it returns to.
            let call = word.wrapping_sub(1);
            if !all.contains(&call) || !ranges::contain(code, call) {
                continue;
            }
            if let Occupant::Code { mark, as_of } = cache.at(process, call, time, found).occupant {
                found.again(mark, as_of.unwrap_or(time), 0);
            }
        }
    }

    /// The codes that were found, and when.
    pub fn finish(self) -> ReferencedCodes {
        ReferencedCodes(self.found)
    }
}

/// Code that may be a caller on a copied stack.
#[derive(Debug, Default)]
pub struct ReferencedCodes(SampledCodes);

impl ReferencedCodes {
    /// When stacks referred to `code` in `space`, if any did.
    pub fn usage(&self, space: AddressSpaceId, code: CodeId) -> Option<Usage> {
        self.0.usage(space, code)
    }
}

fn is_returned_to(table: &CodeTable<'_>, code: CodeId) -> bool {
    table.kind(code) != Kind::JavaMethod
}
