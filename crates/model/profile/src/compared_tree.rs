//! The call trees of two profiles, merged by function.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::call_tree::{CallTree, Direction};
use crate::comparison::{Comparison, Measure};
use crate::count::Count;
use crate::id::{Id, NodeId};
use crate::profile::Profile;
use crate::runs::by_run;
use crate::sample::SampleRow;
use crate::significance::holm;

/// The call trees of two profiles as one, in which functions are the same as in a [`Comparison`].
#[derive(Clone, Debug, Default)]
pub struct ComparedTree {
    /// The nodes, those above first.
    pub nodes: Vec<ComparedNode>,
}

/// A function below others, in two profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedNode {
    /// The node above, which has a smaller number.
    pub parent: Option<NodeId>,
    /// The place of its function in [`Comparison::functions`].
    pub function: usize,
    /// The samples of each profile that end here.
    pub own: [u64; 2],
    /// The samples of each profile that end here or below.
    pub total: [u64; 2],
    /// The same for each recording of the profiles.
    pub runs: [Vec<u64>; 2],
    /// The probability of a difference of `total` like this by chance, if there is none in truth. It takes into account that many nodes were compared.
    pub by_chance: f64,
}

impl ComparedNode {
    fn new(parent: Option<NodeId>, function: usize, runs: [Vec<u64>; 2]) -> Self {
        Self { parent, function, own: [0; 2], total: [0; 2], runs, by_chance: 1.0 }
    }

    /// Adds samples of a recording of one side.
    fn add(&mut self, side: usize, run: usize, count: Count) {
        let runs = self.runs.get_mut(side).and_then(|runs| runs.get_mut(run));
        for (number, more) in [
            (self.own.get_mut(side), count.own),
            (self.total.get_mut(side), count.total),
            (runs, count.total),
        ] {
            if let Some(number) = number {
                *number = number.saturating_add(more);
            }
        }
    }
}

impl ComparedTree {
    /// Of these samples, which are those of the comparison.
    ///
    /// The comparison has to be one by [`Compared::Total`](crate::Compared::Total): another one has only the functions that samples end in.
    #[must_use]
    pub fn of(
        profiles: [&Profile; 2],
        samples: [&mut dyn Iterator<Item = SampleRow>; 2],
        comparison: &Comparison,
        measure: Measure,
    ) -> Self {
        let mut nodes: Vec<ComparedNode> = Vec::new();
        let mut numbers: HashMap<(Option<NodeId>, usize), NodeId, FxBuildHasher> =
            HashMap::default();
        for (side, (profile, samples)) in profiles.into_iter().zip(samples).enumerate() {
            let runs = comparison.runs.get(side).map_or(0, Vec::len);
            for (run, samples) in by_run(samples, runs).into_iter().enumerate() {
                let tree = CallTree::of(profile, samples, Direction::Callees);
                // Of each node of the profile's tree, the node here.
                let mut merged: Vec<Option<NodeId>> = Vec::with_capacity(tree.nodes().len());
                for node in tree.nodes() {
                    let parent =
                        node.parent.and_then(|id| merged.get(id.index()).copied().flatten());
                    let Some(function) = comparison.place_of(side, node.function) else {
                        merged.push(parent);
                        continue;
                    };
                    let next = NodeId::at(nodes.len());
                    let id = *numbers.entry((parent, function)).or_insert(next);
                    if id == next {
                        let runs = comparison.runs.each_ref().map(|runs| vec![0; runs.len()]);
                        nodes.push(ComparedNode::new(parent, function, runs));
                    }
                    merged.push(Some(id));
                    if let Some(row) = nodes.get_mut(id.index()) {
                        row.add(side, run, node.count);
                    }
                }
            }
        }
        let mut tree = Self { nodes };
        tree.find_chance(comparison.runs.each_ref().map(Vec::as_slice), measure);
        tree
    }

    /// A node with all samples of its parent says nothing that the parent does not say: it is not tested again, so that deep stacks don't make
    /// the correction for many tests stricter.
    fn find_chance(&mut self, all: [&[u64]; 2], measure: Measure) {
        let is_repeated = |node: &ComparedNode| {
            let parent = node.parent.and_then(|id| self.nodes.get(id.index()));
            parent.is_some_and(|parent| parent.runs == node.runs)
        };
        let tested: Vec<usize> = (0..self.nodes.len())
            .filter(|&place| self.nodes.get(place).is_some_and(|node| !is_repeated(node)))
            .collect();
        // Most nodes have few samples, so that their numbers recur.
        let mut known: HashMap<&[Vec<u64>; 2], f64, FxBuildHasher> = HashMap::default();
        let probabilities: Vec<f64> = tested
            .iter()
            .filter_map(|&place| self.nodes.get(place))
            .map(|node| {
                let runs = || node.runs.each_ref().map(Vec::as_slice);
                *known.entry(&node.runs).or_insert_with(|| measure.by_chance_of_runs(runs(), all))
            })
            .collect();
        for (place, corrected) in tested.iter().zip(holm(&probabilities)) {
            if let Some(node) = self.nodes.get_mut(*place) {
                node.by_chance = corrected;
            }
        }
        for place in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(place) else { continue };
            let parent = node.parent.and_then(|id| self.nodes.get(id.index()));
            let inherited = parent.filter(|it| it.runs == node.runs).map(|it| it.by_chance);
            if let (Some(inherited), Some(node)) = (inherited, self.nodes.get_mut(place)) {
                node.by_chance = inherited;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{Compared, made};

    /// The samples on each path of function names.
    fn paths(profile: &Profile) -> BTreeMap<Vec<u8>, (u64, u64)> {
        let mut paths: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
        for sample in profile.samples().iter() {
            let frames: Vec<_> = profile.frames_of(sample.stack).collect();
            let mut path = Vec::new();
            for frame in frames.iter().rev() {
                path.extend(profile.function_name(frame.function));
                paths.entry(path.clone()).or_default().1 += 1;
            }
            paths.entry(path).or_default().0 += 1;
        }
        paths
    }

    fn compared(profiles: [&Profile; 2]) -> (Comparison, ComparedTree) {
        let [before, after] = profiles;
        let measure = Measure::Share;
        let comparison = Comparison::of(
            profiles,
            [&mut before.samples().iter(), &mut after.samples().iter()],
            Compared::Total,
            measure,
        );
        let tree = ComparedTree::of(
            profiles,
            [&mut before.samples().iter(), &mut after.samples().iter()],
            &comparison,
            measure,
        );
        (comparison, tree)
    }

    proptest! {
        #[test]
        fn each_path_has_the_samples_of_both(before in made::profile(), after in made::profile()) {
            let (comparison, tree) = compared([&before, &after]);
            let mut names: Vec<Vec<u8>> = Vec::new();
            let mut found = [BTreeMap::new(), BTreeMap::new()];
            for node in &tree.nodes {
                let mut path = node.parent.map(|id| names[id.index()].clone()).unwrap_or_default();
                path.extend(&comparison.functions[node.function].key.name);
                for (side, found) in found.iter_mut().enumerate() {
                    if node.total[side] > 0 {
                        let old = found.insert(path.clone(), (node.own[side], node.total[side]));
                        prop_assert_eq!(old, None);
                    }
                }
                names.push(path);
            }
            prop_assert_eq!(found, [paths(&before), paths(&after)]);
        }

        #[test]
        fn a_profile_differs_from_itself_by_chance_only(profile in made::profile()) {
            let (_, tree) = compared([&profile, &profile]);
            prop_assert!(tree.nodes.iter().all(|node| node.by_chance == 1.0));
        }
    }
}
