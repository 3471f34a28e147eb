//! Stacks merged by function.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::count::Count;
use crate::id::{FunctionId, Id, NodeId};
use crate::profile::Profile;
use crate::sample::SampleRow;
use crate::sampled_stack::SampledStack;
use crate::unnamed_runs::UnnamedRuns;

/// From where a tree is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the bottom of the stacks: whom a function called.
    Callees,
    /// From the innermost frames: who called a function.
    Callers,
}

/// A function below others in a tree.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The node above, which has a smaller number.
    pub parent: Option<NodeId>,
    /// The function.
    pub function: FunctionId,
    /// Samples that end here, and all below. Where callers are shown, no samples end at a node but at the first.
    pub count: Count,
    /// The most frames of the function that stand here one behind the other: more than 1 only of a function without a name ([`UnnamedRuns`]).
    pub repeated: u32,
}

/// A tree of functions. Each has its callees below it, or its callers.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    nodes: Vec<Node>,
    roots: Vec<NodeId>,
    children: Vec<Vec<NodeId>>,
}

#[derive(Default)]
struct Growing {
    tree: CallTree,
    numbers: HashMap<(Option<NodeId>, FunctionId), NodeId, FxBuildHasher>,
}

impl CallTree {
    /// Of these samples.
    #[must_use]
    pub fn of(
        profile: &Profile,
        samples: impl Iterator<Item = SampleRow>,
        direction: Direction,
    ) -> Self {
        let sampled = SampledStack::all(profile, samples);
        let mut growing = Growing::default();
        match direction {
            Direction::Callees => growing.add_callees(profile, sampled),
            Direction::Callers => growing.add_callers(profile, sampled),
        }
        let mut tree = growing.tree;
        let weight = |nodes: &[Node], id: &NodeId| {
            let total = nodes.get(id.index()).map(|node| (node.count.total, node.function));
            std::cmp::Reverse(total)
        };
        tree.roots.sort_by_key(|id| weight(&tree.nodes, id));
        for children in &mut tree.children {
            children.sort_by_key(|id| weight(&tree.nodes, id));
        }
        tree
    }

    /// The nodes, those above first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes at the top, those with the most samples first.
    #[must_use]
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// The nodes below one, those with the most samples first.
    #[must_use]
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        self.children.get(node.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }
}

impl Growing {
    fn node(&mut self, parent: Option<NodeId>, function: FunctionId) -> NodeId {
        let Self { tree, numbers } = self;
        *numbers.entry((parent, function)).or_insert_with(|| {
            let id = NodeId::at(tree.nodes.len());
            tree.nodes.push(Node { parent, function, count: Count::default(), repeated: 1 });
            tree.children.push(Vec::new());
            let above = parent.and_then(|parent| tree.children.get_mut(parent.index()));
            above.unwrap_or(&mut tree.roots).push(id);
            id
        })
    }

    fn count(&mut self, node: NodeId, count: Count) {
        if let Some(node) = self.tree.nodes.get_mut(node.index()) {
            node.count.add(count);
        }
    }

    fn repeat(&mut self, node: NodeId, times: u32) {
        if let Some(node) = self.tree.nodes.get_mut(node.index()) {
            node.repeated = node.repeated.max(times);
        }
    }

    fn add_callees(&mut self, profile: &Profile, sampled: impl Iterator<Item = SampledStack>) {
        let mut counts = vec![Count::default(); profile.stacks().len()];
        // Only stacks with samples, and their callers.
        let mut is_used = vec![false; profile.stacks().len()];
        for sampled in sampled {
            let place = sampled.stack.index();
            if let (Some(count), Some(used)) = (counts.get_mut(place), is_used.get_mut(place)) {
                (*count, *used) = (both(&sampled), true);
            }
        }
        profile.mark_callers(&mut is_used);
        let runs = UnnamedRuns::of(profile);
        let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(counts.len());
        let stacks = profile.stacks().iter().zip(runs.lengths());
        for (((row, &run), count), is_used) in stacks.zip(counts).zip(is_used) {
            let above = row.parent.and_then(|parent| nodes.get(parent.index()).copied().flatten());
            let same = above.filter(|_| run > 1);
            let function = profile.frame(row.frame).function;
            let node = is_used.then(|| same.unwrap_or_else(|| self.node(above, function)));
            nodes.push(node);
            if let Some(node) = node {
                self.count(node, count);
                self.repeat(node, run);
            }
        }
        // A node has a larger number than the one above it.
        for place in (0..self.tree.nodes.len()).rev() {
            let Some(node) = self.tree.nodes.get(place).copied() else { continue };
            if let Some(above) = node.parent {
                self.count(above, Count { own: 0, own_weight: 0, ..node.count });
            }
        }
    }

    fn add_callers(&mut self, profile: &Profile, sampled: impl Iterator<Item = SampledStack>) {
        let runs = UnnamedRuns::of(profile);
        for sampled in sampled {
            let mut count = both(&sampled);
            let mut above = None;
            let mut next = Some(sampled.stack);
            while let Some(mut stack) = next {
                let node = self.node(above, profile.frame(profile.stack(stack).frame).function);
                self.count(node, count);
                self.repeat(node, runs.length(stack));
                count = sampled.total();
                above = Some(node);
                next = profile.stack(stack).parent;
                while let Some(caller) = next.filter(|_| runs.continues(stack)) {
                    stack = caller;
                    next = profile.stack(stack).parent;
                }
            }
        }
    }
}

/// What the node of a stack's innermost frame counts.
fn both(sampled: &SampledStack) -> Count {
    let mut count = sampled.own();
    count.add(sampled.total());
    count
}
