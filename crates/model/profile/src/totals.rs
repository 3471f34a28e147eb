//! Samples by function and code.

use std::cmp::Ordering;

use crate::count::Count;
use crate::id::{CodeId, FrameId, FunctionId};
use crate::profile::Profile;
use crate::sample::SampleRow;
use crate::sampled_stack::SampledStack;

/// Samples by function and by code.
#[derive(Clone, Debug)]
pub struct Totals {
    functions: Vec<Count>,
    codes: Vec<Count>,
    frames: Vec<Count>,
    samples: u64,
    weight: u64,
}

/// Where something was last seen on a stack, so that it counts once.
struct Seen(Vec<u32>);

impl Seen {
    fn new(rows: usize) -> Self {
        Self(vec![0; rows])
    }

    /// Whether it is the first time in this round; rounds count from 1.
    fn first(&mut self, place: usize, round: u32) -> bool {
        let Some(last) = self.0.get_mut(place) else { return false };
        let first = *last != round;
        *last = round;
        first
    }
}

impl Totals {
    /// Of all samples.
    #[must_use]
    pub fn all(profile: &Profile) -> Self {
        Self::of(profile, profile.samples().iter())
    }

    /// Of these samples.
    #[must_use]
    pub fn of(profile: &Profile, samples: impl Iterator<Item = SampleRow>) -> Self {
        Self::of_stacks(profile, SampledStack::all(profile, samples))
    }

    /// Of stacks whose samples are counted already.
    #[must_use]
    pub fn of_stacks(profile: &Profile, stacks: impl Iterator<Item = SampledStack>) -> Self {
        let mut all = Self {
            functions: vec![Count::default(); profile.functions().len()],
            codes: vec![Count::default(); profile.codes().len()],
            frames: vec![Count::default(); profile.frames().len()],
            samples: 0,
            weight: 0,
        };
        let mut functions = Seen::new(all.functions.len());
        let mut codes = Seen::new(all.codes.len());
        let mut frames = Seen::new(all.frames.len());
        for (round, sampled) in (1..).zip(stacks) {
            all.samples = all.samples.saturating_add(sampled.samples);
            all.weight = all.weight.saturating_add(sampled.weight);
            let (mut own, total) = (sampled.own(), sampled.total());
            for row in profile.stacks_of(sampled.stack) {
                let frame = profile.frame(row.frame);
                let count = |counts: &mut Vec<Count>, seen: &mut Seen, place: usize, own| {
                    if let Some(counter) = counts.get_mut(place) {
                        counter.add(own);
                        if seen.first(place, round) {
                            counter.add(total);
                        }
                    }
                };
                count(&mut all.functions, &mut functions, frame.function.index(), own);
                count(&mut all.frames, &mut frames, row.frame.index(), own);
                if let Some(code) = frame.code {
                    count(&mut all.codes, &mut codes, code.index(), own);
                }
                own = Count::default();
            }
        }
        all
    }

    /// Of a function.
    #[must_use]
    pub fn of_function(&self, function: FunctionId) -> Count {
        self.functions.get(function.index()).copied().unwrap_or_default()
    }

    /// Of a code: with it as the code of the innermost address, or anywhere on the stack.
    #[must_use]
    pub fn of_code(&self, code: CodeId) -> Count {
        self.codes.get(code.index()).copied().unwrap_or_default()
    }

    /// Of a frame.
    #[must_use]
    pub fn of_frame(&self, frame: FrameId) -> Count {
        self.frames.get(frame.index()).copied().unwrap_or_default()
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Their weight.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The functions that were sampled, in the order of all views: those with the most own samples first, then those with the most samples in what they
    /// called, then by name and place.
    #[must_use]
    pub fn functions(&self, profile: &Profile) -> Vec<(FunctionId, Count)> {
        let mut sampled: Vec<_> = self.sampled().collect();
        sampled.sort_by(|a, b| order(profile, a, b));
        sampled
    }

    /// The first `most` of these functions that are chosen.
    #[must_use]
    pub fn first_functions(
        &self,
        profile: &Profile,
        most: usize,
        is_chosen: impl Fn(FunctionId) -> bool,
    ) -> Vec<(FunctionId, Count)> {
        let mut sampled: Vec<_> = self.sampled().filter(|(id, _)| is_chosen(*id)).collect();
        // Nearly all of them may have one sample only, which makes sorting by name slow.
        if sampled.len() > most {
            sampled.select_nth_unstable_by(most, |a, b| order(profile, a, b));
            sampled.truncate(most);
        }
        sampled.sort_by(|a, b| order(profile, a, b));
        sampled
    }

    fn sampled(&self) -> impl Iterator<Item = (FunctionId, Count)> {
        let numbered = (0..).map(FunctionId).zip(self.functions.iter().copied());
        numbered.filter(|(_, count)| count.total > 0)
    }
}

/// The order of functions in all views.
fn order(
    profile: &Profile,
    (a, more): &(FunctionId, Count),
    (b, less): &(FunctionId, Count),
) -> Ordering {
    let place = |id: FunctionId| {
        let row = profile.function(id);
        (profile.text(row.name), profile.text(row.file), row.line, row.column, id)
    };
    let by_count = (less.own, less.total).cmp(&(more.own, more.total));
    by_count.then_with(|| place(*a).cmp(&place(*b)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::made::profile;
    use crate::{CallTree, Direction, Selection, StackId};

    proptest! {
        /// Against a count that walks the stack of each sample.
        #[test]
        fn samples_count_once_on_each_stack(
            profile in profile(),
            from in 0u64..60,
            length in 0u64..60,
            tids in proptest::option::of(proptest::collection::vec(0u32..3, 0..3)),
        ) {
            let selection = Selection {
                times: Some(from..from + length),
                threads: tids.map(|tids| tids.into_iter().map(crate::ThreadId).collect()),
                event: None,
            };
            let chosen = |sample: &SampleRow| {
                (from..from + length).contains(&sample.time)
                    && selection.threads.as_ref().is_none_or(|all| all.contains(&sample.thread))
            };
            let samples: Vec<SampleRow> = profile.samples().iter().filter(chosen).collect();
            let totals = Totals::of(&profile, selection.of(&profile));
            prop_assert_eq!(totals.samples(), samples.len() as u64);
            prop_assert_eq!(totals.weight(), samples.iter().map(|sample| sample.weight).sum());
            let functions = |stack: StackId| -> Vec<FunctionId> {
                profile.frames_of(stack).map(|frame| frame.function).collect()
            };
            let codes = |stack: StackId| -> Vec<Option<CodeId>> {
                profile.frames_of(stack).map(|frame| frame.code).collect()
            };
            for function in profile.function_ids() {
                let has = |sample: &&SampleRow| functions(sample.stack).contains(&function);
                let ends = |sample: &&SampleRow| functions(sample.stack)[0] == function;
                let weight = |samples: &mut dyn Iterator<Item = &SampleRow>| {
                    samples.fold((0, 0), |(n, weight), sample| (n + 1, weight + sample.weight))
                };
                let (total, total_weight) = weight(&mut samples.iter().filter(has));
                let (own, own_weight) = weight(&mut samples.iter().filter(ends));
                let count = Count { own, total, own_weight, total_weight };
                prop_assert_eq!(totals.of_function(function), count);
            }
            for code in (0..).map(CodeId).take(profile.codes().len()) {
                let has = |sample: &&SampleRow| codes(sample.stack).contains(&Some(code));
                let ends = |sample: &&SampleRow| codes(sample.stack)[0] == Some(code);
                let count = totals.of_code(code);
                prop_assert_eq!(count.total, samples.iter().filter(has).count() as u64);
                prop_assert_eq!(count.own, samples.iter().filter(ends).count() as u64);
            }
            for direction in [Direction::Callees, Direction::Callers] {
                let tree = CallTree::of(&profile, samples.iter().copied(), direction);
                let total = |ids: &[crate::NodeId]| -> u64 {
                    ids.iter().map(|&id| tree.node(id).map_or(0, |node| node.count.total)).sum()
                };
                prop_assert_eq!(total(tree.roots()), samples.len() as u64);
                for (id, node) in (0..).map(crate::NodeId).zip(tree.nodes()) {
                    prop_assert!(node.count.total > 0);
                    prop_assert!(total(tree.children(id)) <= node.count.total);
                    if direction == Direction::Callees {
                        prop_assert_eq!(total(tree.children(id)) + node.count.own, node.count.total);
                    }
                }
            }
        }
    }
}
