//! Stacks merged by the label of their frames, for formats that repeat a function in each node of a tree.

use profile::{Profile, Selection, StackId, UnnamedRuns};

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
    /// By number of the node: the most frames in a row that are one node.
    repeated: Vec<u32>,
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
        Self::with_runs(profile, options, &UnnamedRuns::default())
    }

    /// The same, but a run of frames of one function without a name is one node.
    pub fn with_runs_merged(profile: &Profile, options: &Options) -> Self {
        Self::with_runs(profile, options, &UnnamedRuns::of(profile))
    }

    fn with_runs(profile: &Profile, options: &Options, runs: &UnnamedRuns) -> Self {
        let used = used_stacks(profile, &options.selection);
        let mut nodes = Self::default();
        for ((id, stack), used) in (0..).map(StackId).zip(profile.stacks()).zip(used) {
            if !used {
                nodes.of_stack.push(None);
                continue;
            }
            let parent = stack.parent.and_then(|parent| nodes.of_stack(parent));
            let label = options.label(profile, profile.frame(stack.frame));
            let run = runs.length(id);
            let node = match parent {
                Some(same) if run > 1 => same,
                _ => nodes.nodes.number(Node { parent, label }),
            };
            nodes.repeated.resize(nodes.nodes.rows().len(), 1);
            if let Some(repeated) = nodes.repeated.get_mut(node as usize) {
                *repeated = run.max(*repeated);
            }
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

    /// The labels from a node down to the bottom of its stack, each with the number of frames in a row that it stands for.
    pub fn labels(&self, node: u32) -> impl Iterator<Item = (Label, u32)> + '_ {
        let mut next = Some(node);
        std::iter::from_fn(move || {
            let place = next? as usize;
            let node = self.nodes().get(place)?;
            next = node.parent;
            Some((node.label, self.repeated.get(place).copied().unwrap_or(1)))
        })
    }
}
