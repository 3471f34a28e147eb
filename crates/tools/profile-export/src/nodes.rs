//! Stacks merged by the label of their frames, for formats that repeat a function in each node of a tree.

use profile::{Profile, Selection, StackId};
use rustc_hash::FxHashMap;

use crate::options::{Label, Options};

/// A label below others.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The node of the caller, which has a smaller number.
    pub parent: Option<u32>,
    /// The label.
    pub label: Label,
}

/// The nodes of all stacks that have samples.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
    of_stack: Vec<Option<u32>>,
}

/// Which stacks have samples, or called what has.
pub fn used_stacks(profile: &Profile, selection: &Selection) -> Vec<bool> {
    let mut used = vec![false; profile.stacks().len()];
    let mark = |used: &mut Vec<bool>, stack: StackId| {
        if let Some(used) = used.get_mut(stack.index()) {
            *used = true;
        }
    };
    selection.of(profile).for_each(|sample| mark(&mut used, sample.stack));
    for (place, stack) in profile.stacks().iter().enumerate().rev() {
        if let Some(parent) = stack.parent.filter(|_| used.get(place) == Some(&true)) {
            mark(&mut used, parent);
        }
    }
    used
}

impl Nodes {
    /// Of the stacks of these samples.
    pub fn of(profile: &Profile, options: &Options) -> Self {
        let used = used_stacks(profile, &options.selection);
        let mut nodes = Self::default();
        let mut numbers = FxHashMap::default();
        for (stack, used) in profile.stacks().iter().zip(used) {
            if !used {
                nodes.of_stack.push(None);
                continue;
            }
            let parent = stack.parent.and_then(|parent| nodes.of_stack(parent));
            let label = options.label(profile, profile.frame(stack.frame));
            let next = u32::try_from(nodes.nodes.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry((parent, label)).or_insert(next);
            if number == next {
                nodes.nodes.push(Node { parent, label });
            }
            nodes.of_stack.push(Some(number));
        }
        nodes
    }

    /// The node of a stack's innermost frame.
    pub fn of_stack(&self, stack: StackId) -> Option<u32> {
        self.of_stack.get(stack.index()).copied().flatten()
    }

    /// All nodes, callers first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The labels from a node down to the bottom of its stack.
    pub fn labels(&self, node: u32) -> impl Iterator<Item = Label> + '_ {
        let mut next = Some(node);
        std::iter::from_fn(move || {
            let node = self.nodes.get(next? as usize)?;
            next = node.parent;
            Some(node.label)
        })
    }
}
