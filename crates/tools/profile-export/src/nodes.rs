//! Stacks merged by the label of their frames, for formats that repeat a function in each node of a tree.

use profile::{Profile, Selection, StackId};

use crate::options::{Label, Options};
use crate::rows::Rows;

/// A label below others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The node of the caller, which has a smaller number.
    pub parent: Option<u32>,
    /// The label.
    pub label: Label,
}

/// The nodes of all stacks that have samples.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: Rows<Node>,
    of_stack: Vec<Option<u32>>,
}

/// Which stacks have samples, or called what has.
pub fn used_stacks(profile: &Profile, selection: &Selection) -> Vec<bool> {
    let mut used = vec![false; profile.stacks().len()];
    for sample in selection.of(profile) {
        if let Some(used) = used.get_mut(sample.stack.index()) {
            *used = true;
        }
    }
    profile.mark_callers(&mut used);
    used
}

impl Nodes {
    /// Of the stacks of these samples.
    pub fn of(profile: &Profile, options: &Options) -> Self {
        let used = used_stacks(profile, &options.selection);
        let mut nodes = Self::default();
        for (stack, used) in profile.stacks().iter().zip(used) {
            if !used {
                nodes.of_stack.push(None);
                continue;
            }
            let parent = stack.parent.and_then(|parent| nodes.of_stack(parent));
            let label = options.label(profile, profile.frame(stack.frame));
            let node = nodes.nodes.number(Node { parent, label });
            nodes.of_stack.push(Some(node));
        }
        nodes
    }

    /// The node of a stack's innermost frame.
    pub fn of_stack(&self, stack: StackId) -> Option<u32> {
        self.of_stack.get(stack.index()).copied().flatten()
    }

    /// All nodes, callers first.
    pub fn nodes(&self) -> &[Node] {
        self.nodes.rows()
    }

    /// The labels from a node down to the bottom of its stack.
    pub fn labels(&self, node: u32) -> impl Iterator<Item = Label> + '_ {
        let mut next = Some(node);
        std::iter::from_fn(move || {
            let node = self.nodes().get(next? as usize)?;
            next = node.parent;
            Some(node.label)
        })
    }
}
