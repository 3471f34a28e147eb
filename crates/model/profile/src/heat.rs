//! Where in its code and in its source a function was sampled.

use std::collections::{BTreeMap, HashSet};

use rustc_hash::FxBuildHasher;

use crate::code::Code;
use crate::count::Count;
use crate::id::{CodeId, FunctionId};
use crate::profile::Profile;
use crate::sample::SampleRow;
use crate::sampled_stack::SampledStack;
use crate::stack::Frame;

/// Samples of one function by instruction and by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    /// By code and by offset of the instruction in it. Of the function's own codes all samples, those in inlined calls included; of codes that
    /// the function was inlined into, those where it was.
    pub codes: BTreeMap<CodeId, BTreeMap<u64, Count>>,
    /// By line of the function's file, 0 if it is not known. Own samples are those with the function as the innermost frame.
    pub lines: BTreeMap<u32, Count>,
}

impl Code {
    /// The offset in the code of a frame in it.
    #[must_use]
    pub fn offset_of(&self, frame: &Frame) -> Option<u64> {
        let start = if frame.module.is_some() { self.module_address } else { self.address };
        frame.address.checked_sub(start)
    }
}

impl Heat {
    /// Of a function, in these samples.
    #[must_use]
    pub fn of(
        profile: &Profile,
        samples: impl Iterator<Item = SampleRow>,
        function: FunctionId,
    ) -> Self {
        let mut heat = Self::default();
        let mut seen_lines: HashSet<u32, FxBuildHasher> = HashSet::default();
        let mut seen_offsets: HashSet<(CodeId, u64), FxBuildHasher> = HashSet::default();
        for sampled in SampledStack::all(profile, samples) {
            let (own, total) = (sampled.own(), sampled.total());
            seen_lines.clear();
            seen_offsets.clear();
            let mut frames = profile.frames_of(sampled.stack).peekable();
            let mut is_innermost = true;
            while let Some(first) = frames.next() {
                // The frames of the calls that were inlined at one address.
                let is_innermost_address = is_innermost;
                let mut has_function = false;
                let mut frame = first;
                loop {
                    if frame.function == function {
                        has_function = true;
                        let line = heat.lines.entry(frame.line).or_default();
                        if is_innermost {
                            line.add(own);
                        }
                        if seen_lines.insert(frame.line) {
                            line.add(total);
                        }
                    }
                    is_innermost = false;
                    if !frame.is_inlined() {
                        break;
                    }
                    let place = |frame: &Frame| (frame.code, frame.module, frame.address);
                    match frames.next_if(|outer| place(outer) == place(first)) {
                        Some(outer) => frame = outer,
                        None => break,
                    }
                }
                let Some(id) = first.code else { continue };
                let code = profile.code(id);
                if code.function != function && !has_function {
                    continue;
                }
                let Some(offset) = code.offset_of(first) else { continue };
                let count = heat.codes.entry(id).or_default().entry(offset).or_default();
                if is_innermost_address {
                    count.add(own);
                }
                if seen_offsets.insert((id, offset)) {
                    count.add(total);
                }
            }
        }
        heat
    }

    /// The samples in a code: with it as the code of the innermost address.
    #[must_use]
    pub fn own_in(&self, code: CodeId) -> u64 {
        self.codes
            .get(&code)
            .map(|offsets| offsets.values().map(|count| count.own).sum())
            .unwrap_or_default()
    }

    /// The samples in all codes.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.codes.values().flat_map(BTreeMap::values).map(|count| count.own).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Function, FunctionKind, ThreadId};

    #[test]
    fn samples_are_counted_by_instruction_and_line() {
        let mut builder = Builder::new();
        let event = builder.event(b"cycles");
        let process = builder.process(1, b"made");
        builder.thread(process, 1, b"made");
        let mut function = |name: &[u8]| {
            let name = builder.string(name);
            builder.function(Function::new(name, FunctionKind::Jitted))
        };
        let (outer, inner) = (function(b"outer"), function(b"inner"));
        let mut code = Code::new(outer, 0x40);
        code.address = 0x1000;
        let code = builder.code(code);
        let mut frame = |function, address, depth, line| {
            let mut frame = Frame::new(function);
            (frame.code, frame.address, frame.depth, frame.line) =
                (Some(code), address, depth, line);
            builder.frame(frame)
        };
        // outer calls itself at 0x1008, and has inner inlined at 0x1010.
        let call = frame(outer, 0x1008, 0, 2);
        let around = frame(outer, 0x1010, 0, 3);
        let inlined = frame(inner, 0x1010, 1, 30);
        let end = frame(outer, 0x1018, 0, 4);
        let base = builder.stack(None, call);
        let again = builder.stack(Some(base), call);
        let around = builder.stack(Some(again), around);
        let inlined = builder.stack(Some(around), inlined);
        let end = builder.stack(None, end);
        for (stack, samples) in [(inlined, 3), (end, 2)] {
            for time in 0..samples {
                let thread = ThreadId(0);
                builder.sample(SampleRow { time, thread, event, weight: 10, stack });
            }
        }
        let profile = builder.finish();
        let count =
            |own, total| Count { own, total, own_weight: own * 10, total_weight: total * 10 };
        let of_outer = Heat::of(&profile, profile.samples().iter(), outer);
        let offsets = [(8, count(0, 3)), (16, count(3, 3)), (24, count(2, 2))];
        assert_eq!(of_outer.codes, [(code, offsets.into())].into());
        assert_eq!(of_outer.lines, [(2, count(0, 3)), (3, count(0, 3)), (4, count(2, 2))].into());
        assert_eq!((of_outer.own_in(code), of_outer.own()), (5, 5));
        let of_inner = Heat::of(&profile, profile.samples().iter(), inner);
        assert_eq!(of_inner.codes, [(code, [(16, count(3, 3))].into())].into());
        assert_eq!(of_inner.lines, [(30, count(3, 3))].into());
    }
}
