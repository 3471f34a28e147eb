//! Converts inlined calls to a tree of calls whose ranges nest.

use std::ops::Range;

use fallible::{Map, Vec};
use jit_code::{Code, Inlined};

use crate::code::VisibleCode;

/// Maximum nesting depth of calls; deeper calls are left out.
///
/// Compilers stop far earlier (HotSpot at 15), perf shows no more frames of a stack than this, and some readers of
/// debug info process nested calls recursively.
const DEEPEST: u32 = 127;

/// Limits the number of parts of all calls of a code: this many for each given range, plus [`PARTS`].
///
/// Calls that nest correctly have no more parts than ranges were given. But one call with many ranges around many
/// calls with one range each splits each of these into as many parts.
const PARTS_PER_RANGE: usize = 4;
const PARTS: usize = 64;

/// The inlined calls of one function: a tree, each call followed by those inlined into it.
#[derive(Debug, Default)]
pub(crate) struct Calls<'a> {
    calls: Vec<Call<'a>>,
    /// The parts of all calls, consecutively.
    parts: Vec<Range<u64>>,
}

/// A call that covers at least one address.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) inlined: &'a Inlined<'a>,
    /// Number of calls around it.
    pub(crate) depth: u32,
    /// The indices of its parts.
    parts: Range<usize>,
}

impl Call<'_> {
    /// File, line and column of the call, if known.
    pub(crate) fn place(&self) -> Option<(&[u8], u32, u32)> {
        let Inlined { file, line, column, .. } = *self.inlined;
        (!file.is_empty() && line != 0).then_some((file, line, column))
    }
}

impl<'a> Calls<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Call<'a>> {
        self.calls.iter()
    }

    /// The ranges of a call's code: at least one, in ascending order, with gaps between them, within the parts of the
    /// call around it and disjoint from those of its siblings.
    pub(crate) fn parts(&self, call: &Call<'_>) -> &[Range<u64>] {
        self.parts.get(call.parts.clone()).unwrap_or_default()
    }

    /// The outermost call at `address`.
    pub(crate) fn outermost(&self, address: u64) -> Option<&Call<'a>> {
        let mut outer = self.iter().filter(|call| call.depth == 0);
        outer.find(|call| self.parts(call).iter().any(|part| part.contains(&address)))
    }
}

/// The inlined calls in the visible part of a code, with addresses mapped by `place`.
pub(crate) fn calls<'a>(code: &VisibleCode<'a>, place: impl Fn(u64) -> u64) -> Calls<'a> {
    let inlined = code.code.inlined;
    if inlined.is_empty() {
        return Calls::default();
    }
    let mut clipper = Clipper::new(code);
    for (index, call) in inlined.iter().enumerate() {
        clipper.add(index, call);
    }
    let Clipper { clipped, mut parts, .. } = clipper;
    for part in &mut parts {
        *part = place(part.start)..place(part.end);
    }
    Calls { calls: in_tree_order(inlined, &clipped), parts }
}

/// The result for one call.
struct Clipped {
    parts: Range<usize>,
    depth: u32,
}

/// Assigns every address to the innermost call.
struct Clipper {
    /// Where the code starts.
    start: u64,
    /// The ranges that belong to an owner and to none of the calls in it that were added so far: from owner and start
    /// to end. Owner 0 is the code, and n + 1 the call of index n.
    own: Map<(usize, u64), u64>,
    clipped: Vec<Clipped>,
    parts: Vec<Range<u64>>,
    /// Number of parts that may still be added.
    room: usize,
    /// The parts of the call being added.
    taken: Vec<Range<u64>>,
}

impl Clipper {
    fn new(code: &VisibleCode<'_>) -> Self {
        let Code { address: start, inlined, .. } = code.code;
        let ranges = inlined.iter().map(|inlined| inlined.ranges.len());
        let ranges = ranges.fold(0, usize::saturating_add);
        Clipper {
            start,
            own: Map::from_iter([((0, code.visible.start), code.visible.end)]),
            clipped: Vec::with_capacity(inlined.len()),
            parts: Vec::new(),
            room: ranges.saturating_mul(PARTS_PER_RANGE).saturating_add(PARTS),
            taken: Vec::new(),
        }
    }

    /// Adds the call with the next index.
    fn add(&mut self, index: usize, inlined: &Inlined<'_>) {
        let (owner, depth) = match inlined.parent {
            None => (Some(0), 0),
            Some(parent) => match self.clipped.get(parent as usize) {
                Some(parent_call) => {
                    (Some((parent as usize).saturating_add(1)), parent_call.depth.saturating_add(1))
                }
                None => (None, 0),
            },
        };
        self.taken.clear();
        if let Some(owner) = owner.filter(|_| depth < DEEPEST) {
            // A range that wraps is empty, or has no part in common with the code.
            let start = self.start;
            let at = |offset: u32| start.wrapping_add(offset.into());
            for range in inlined.ranges {
                let range = at(range.start)..at(range.end);
                self.take(owner, &range);
            }
        }
        self.taken.sort_by_key(|part| part.start);
        let first = self.parts.len();
        for part in self.taken.drain(..) {
            match self.parts.get_mut(first..).and_then(|parts| parts.last_mut()) {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => self.parts.push(part),
            }
        }
        let parts = first..self.parts.len();
        for part in self.parts.get(parts.clone()).unwrap_or_default() {
            self.own.insert((index.saturating_add(1), part.start), part.end);
        }
        self.clipped.push(Clipped { parts, depth });
    }

    /// Moves the parts of `range` that `owner` itself has to `taken`.
    fn take(&mut self, owner: usize, range: &Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let before = self.own.range_mut((owner, 0)..(owner, range.start)).next_back();
        if let Some((_, end)) = before
            && *end > range.start
        {
            let rest = std::mem::replace(end, range.start);
            self.own.insert((owner, range.start), rest);
        }
        while self.room > 0 {
            let next = self.own.range((owner, range.start)..(owner, range.end)).next();
            let Some((&(_, start), &end)) = next else { return };
            self.own.remove(&(owner, start));
            if end > range.end {
                self.own.insert((owner, range.end), end);
            }
            self.taken.push(start..end.min(range.end));
            self.room -= 1;
        }
    }
}

/// The calls that have parts, each followed by those inlined into it, siblings in the order of the list.
fn in_tree_order<'a>(inlined: &'a [Inlined<'a>], clipped: &[Clipped]) -> Vec<Call<'a>> {
    // In reverse order: each call becomes the first child of its parent, and the previous first child becomes its
    // sibling.
    let mut first_child: Vec<Option<usize>> = fallible::vec![None; inlined.len()];
    let mut next_sibling = fallible::vec![None; inlined.len()];
    let mut first = None;
    for (index, (call, clipped)) in inlined.iter().zip(clipped).enumerate().rev() {
        if clipped.parts.is_empty() {
            continue;
        }
        let head = match call.parent {
            None => Some(&mut first),
            Some(parent) => first_child.get_mut(parent as usize),
        };
        if let (Some(head), Some(next)) = (head, next_sibling.get_mut(index)) {
            *next = head.replace(index);
        }
    }

    let mut calls = Vec::new();
    let mut ahead = Vec::from_iter(first);
    while let Some(index) = ahead.pop() {
        if let (Some(inlined), Some(clipped)) = (inlined.get(index), clipped.get(index)) {
            calls.push(Call { inlined, depth: clipped.depth, parts: clipped.parts.clone() });
        }
        ahead.extend(next_sibling.get(index).copied().flatten());
        ahead.extend(first_child.get(index).copied().flatten());
    }
    calls
}
