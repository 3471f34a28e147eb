//! Stacks merged by function.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::id::{FunctionId, Id, NodeId, StackId};
use crate::profile::Profile;
use crate::sample::SampleRow;
use crate::totals::Count;

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
        let mut stacks = vec![Count::default(); profile.stacks().len()];
        for sample in samples {
            if let Some(count) = stacks.get_mut(sample.stack.index()) {
                let (own, own_weight) = (1, sample.weight);
                count.add(Count { own, total: own, own_weight, total_weight: own_weight });
            }
        }
        let mut growing = Growing::default();
        match direction {
            Direction::Callees => growing.add_callees(profile, &stacks),
            Direction::Callers => growing.add_callers(profile, &stacks),
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
            tree.nodes.push(Node { parent, function, count: Count::default() });
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

    fn add_callees(&mut self, profile: &Profile, stacks: &[Count]) {
        // Only stacks with samples, and their callers.
        let mut below = vec![false; stacks.len()];
        for (place, row) in profile.stacks().iter().enumerate().rev() {
            let used = below.get(place) == Some(&true)
                || stacks.get(place).is_some_and(|count| count.total > 0);
            if used {
                for at in [Some(place), row.parent.map(StackId::index)].into_iter().flatten() {
                    if let Some(below) = below.get_mut(at) {
                        *below = true;
                    }
                }
            }
        }
        let mut nodes: Vec<Option<NodeId>> = vec![None; stacks.len()];
        for (place, row) in profile.stacks().iter().enumerate() {
            if below.get(place) != Some(&true) {
                continue;
            }
            let above = row.parent.and_then(|parent| nodes.get(parent.index()).copied().flatten());
            let node = self.node(above, profile.frame(row.frame).function);
            if let Some(own) = nodes.get_mut(place) {
                *own = Some(node);
            }
            self.count(node, stacks.get(place).copied().unwrap_or_default());
        }
        // A node has a larger number than the one above it.
        for place in (0..self.tree.nodes.len()).rev() {
            let Some(node) = self.tree.nodes.get(place).copied() else { continue };
            if let Some(above) = node.parent {
                self.count(above, Count { own: 0, own_weight: 0, ..node.count });
            }
        }
    }

    fn add_callers(&mut self, profile: &Profile, stacks: &[Count]) {
        for (stack, count) in (0..).map(StackId).zip(stacks) {
            if count.total == 0 {
                continue;
            }
            let mut count = *count;
            let mut above = None;
            for frame in profile.frames_of(stack) {
                let node = self.node(above, frame.function);
                self.count(node, count);
                (count.own, count.own_weight) = (0, 0);
                above = Some(node);
            }
        }
    }
}
