//! Which addresses of a code belong to which inlined call.
//!
//! The API requires that ranges of calls with the same parent do not overlap: one that overlaps another invalidates the whole
//! code. So ranges are cut. A call has only addresses of its parent. Of two calls with one parent, the one whose range begins
//! first has the addresses that both have.

use std::ops::Range;

use fallible::Vec;
use jit_code::Inlined;

/// A range of a call that spans several parts of its parent becomes as many parts. Of all ranges together, at most so many parts
/// are made for each, so that nested calls cannot multiply them.
const PARTS_FOR_EACH: usize = 16;

/// Whose addresses they are: the code's own, or those of the callee of the inlined call with this index.
pub(crate) type Frame = Option<u32>;

/// A range that was announced: the parent, the beginning, the end, and the call's index.
type Announced = (Frame, u32, u32, u32);

/// A range of a frame, in bytes from the beginning of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The inlined call; for the code itself, this has no meaning.
    pub(crate) call: u32,
    /// The call's next part: an index in the list of all.
    next: Option<usize>,
}

/// All parts of all calls.
#[derive(Debug)]
pub(crate) struct Calls {
    size: u32,
    /// Those of one parent in a row, ascending.
    parts: Vec<Part>,
    /// The parts of calls that were inlined into the code itself.
    outermost: Range<usize>,
    /// For each call: its first part, and the parts of the calls that were inlined into its callee.
    each: Vec<(Option<usize>, Range<usize>)>,
}

impl Calls {
    /// The calls of a code of this size.
    pub(crate) fn of(calls: &[Inlined<'_>], size: u32) -> Self {
        let each = fallible::vec![(None, 0..0); calls.len()];
        let mut new = Self { size, parts: Vec::new(), outermost: 0..0, each };
        let mut ranges = announced(calls);
        ranges.sort_unstable();
        let limit = ranges.len().saturating_mul(PARTS_FOR_EACH);
        let mut rest = ranges.as_slice();
        // A parent's index is less than those of its calls: when their turn comes, its parts are known.
        while let Some(&(parent, ..)) = rest.first() {
            let count = rest.partition_point(|&(other, ..)| other == parent);
            let (siblings, behind) = rest.split_at(count);
            rest = behind;
            new.add(parent, siblings, limit);
        }
        new
    }

    /// Adds the parts of all calls with one parent.
    fn add(&mut self, parent: Frame, siblings: &[Announced], limit: usize) {
        let from = self.parts.len();
        let mut around = self.parts_of(parent).next();
        let mut covered = 0;
        for &(_, start, end, call) in siblings {
            let start = start.max(covered);
            covered = covered.max(end);
            while let Some(outer) = around
                && self.parts.len() < limit
            {
                let (start, inner_end) = (start.max(outer.start), end.min(outer.end));
                if start < inner_end {
                    self.push(from, Part { start, end: inner_end, call, next: None });
                }
                if end <= outer.end {
                    break;
                }
                around = self.next_of(outer);
            }
        }
        let children = from..self.parts.len();
        for index in children.clone().rev() {
            if let Some(part) = self.parts.get_mut(index)
                && let Some((first, _)) = self.each.get_mut(part.call as usize)
            {
                part.next = first.replace(index);
            }
        }
        match parent.map(|parent| self.each.get_mut(parent as usize)) {
            None => self.outermost = children,
            Some(Some((_, place))) => *place = children,
            // There are only parents that were announced.
            Some(None) => {}
        }
    }

    /// Appends a part, or extends the last one if it is the same call's and ends there. The parts of this parent begin at `from`.
    fn push(&mut self, from: usize, part: Part) {
        if let Some(before) = self.parts.get_mut(from..).and_then(<[Part]>::last_mut)
            && before.call == part.call
            && before.end == part.start
        {
            before.end = part.end;
        } else {
            self.parts.push(part);
        }
    }

    fn next_of(&self, part: Part) -> Option<Part> {
        self.parts.get(part.next?).copied()
    }

    /// The parts of a frame, ascending: of the code itself, one.
    pub(crate) fn parts_of(&self, frame: Frame) -> impl Iterator<Item = Part> {
        let first = match frame {
            None => {
                (self.size > 0).then_some(Part { start: 0, end: self.size, call: 0, next: None })
            }
            Some(call) => {
                let first = self.each.get(call as usize).and_then(|(first, _)| *first);
                first.and_then(|first| self.parts.get(first).copied())
            }
        };
        std::iter::successors(first, |part| self.next_of(*part))
    }

    /// The parts within a part of a frame that belong to calls inlined there, ascending.
    pub(crate) fn inside(&self, frame: Frame, part: Part) -> &[Part] {
        let children = match frame {
            None => self.outermost.clone(),
            Some(call) => self.each.get(call as usize).map_or(0..0, |each| each.1.clone()),
        };
        let children = self.parts.get(children).unwrap_or_default();
        let from = children.partition_point(|child| child.start < part.start);
        let to = children.partition_point(|child| child.start < part.end);
        children.get(from..to).unwrap_or_default()
    }
}

/// All ranges that have addresses and a valid parent.
fn announced(calls: &[Inlined<'_>]) -> Vec<Announced> {
    let mut ranges = Vec::new();
    for (call, inlined) in (0..).zip(calls) {
        if inlined.parent.is_none_or(|parent| parent < call) {
            let some = inlined.ranges.iter().filter(|range| range.start < range.end);
            ranges.extend(some.map(|range| (inlined.parent, range.start, range.end, call)));
        }
    }
    ranges
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The ranges of each call.
    fn parts(calls: &[Inlined<'_>], size: u32) -> std::vec::Vec<std::vec::Vec<Range<u32>>> {
        let tree = Calls::of(calls, size);
        let of = |call| tree.parts_of(Some(call)).map(|part| part.start..part.end).collect();
        (0..calls.len() as u32).map(of).collect()
    }

    #[test]
    fn ranges_are_cut_to_their_parents_and_joined() {
        let calls = [
            Inlined::new("middle", &[1..2, 2..4, 8..12]),
            Inlined::new("inner", &[0..1, 1..9]).within(0),
            Inlined::new("innermost", &[2..9]).within(1),
            Inlined::new("beyond", &[14..20, 30..31, 5..5]),
            Inlined::new("of itself", &[1..2]).within(4),
            Inlined::new("of nobody", &[1..2]).within(9),
            Inlined::new("outside", &[4..8]).within(0),
        ];
        let expected = [&[1..4, 8..12][..], &[1..4, 8..9], &[2..4, 8..9], &[14..16], &[], &[], &[]];
        assert_eq!(parts(&calls, 16), expected);
        assert_eq!(parts(&calls[..1], 0), [[]]);
    }

    #[test]
    fn calls_of_one_parent_do_not_overlap() {
        let calls = [
            Inlined::new("first", &[4..8, 20..24]),
            Inlined::new("second", &[0..6, 22..30]),
            Inlined::new("third", &[5..10, 2..3]),
        ];
        let expected = [&[6..8, 20..24][..], &[0..6, 24..30], &[8..10]];
        assert_eq!(parts(&calls, 64), expected);
    }

    #[test]
    fn nested_calls_do_not_multiply_ranges() {
        let many: std::vec::Vec<Range<u32>> = (0..1000).map(|at| 4 * at..4 * at + 2).collect();
        let mut calls = vec![Inlined::new("many", &many)];
        calls.extend((0..1000).map(|parent: u32| Inlined::new("all", &[0..4000]).within(parent)));
        let tree = Calls::of(&calls, 4000);
        assert_eq!(tree.parts.len(), 16 * 2000);
    }

    #[test]
    fn a_deep_chain_is_kept() {
        let calls: std::vec::Vec<_> = (0..1000_u32)
            .map(|call| Inlined::new("deep", &[0..64]).within(call.checked_sub(1)))
            .collect();
        assert!(parts(&calls, 64).iter().all(|parts| *parts == [0..64]));
    }

    /// For each address of the code, the chain of calls, outermost first: byte by byte, without sorting.
    fn chain(calls: &[Inlined<'_>], size: u32, at: u32) -> std::vec::Vec<u32> {
        let mut chain = std::vec::Vec::new();
        let mut parent = None;
        if at >= size {
            return chain;
        }
        loop {
            let has = |call: &Inlined<'_>| call.ranges.iter().any(|range| range.contains(&at));
            let siblings = (0..).zip(calls).filter(|(index, call)| {
                call.parent == parent && call.parent.is_none_or(|parent| parent < *index)
            });
            // The range that begins first, as far as its parent reaches; among equals, that which ends first.
            let ranges = siblings.filter(|(_, call)| has(call)).flat_map(|(index, call)| {
                let ranges = call.ranges.iter().filter(|range| range.contains(&at));
                ranges.map(move |range| (range.start, range.end, index))
            });
            let Some((_, _, call)) = ranges.min() else { break };
            chain.push(call);
            parent = Some(call);
        }
        chain
    }

    fn any_calls() -> impl Strategy<Value = std::vec::Vec<(Option<u32>, std::vec::Vec<Range<u32>>)>>
    {
        let range = (0..40_u32, 0..24_u32).prop_map(|(start, length)| start..start + length);
        let call = (prop::option::of(0..6_u32), prop::collection::vec(range, 0..3));
        prop::collection::vec(call, 0..7)
    }

    proptest! {
        #[test]
        fn each_address_has_one_chain_of_calls(described in any_calls(), size in 0..48_u32) {
            let calls: std::vec::Vec<_> = described
                .iter()
                .map(|(parent, ranges)| Inlined::new("", ranges).within(*parent))
                .collect();
            let tree = Calls::of(&calls, size);
            for at in 0..64 {
                let holds = |part: &Part| (part.start..part.end).contains(&at);
                let mut found = std::vec::Vec::new();
                let mut frame = None;
                while let Some(part) = tree.parts_of(frame).find(holds)
                    && let Some(inner) = tree.inside(frame, part).iter().find(|part| holds(part))
                {
                    found.push(inner.call);
                    frame = Some(inner.call);
                }
                prop_assert_eq!(found, chain(&calls, size, at), "at {}", at);
            }
        }
    }
}
