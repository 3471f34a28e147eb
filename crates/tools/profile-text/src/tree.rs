//! Who called whom.

use profile::{CallTree, Direction, NodeId, Profile, SampleRow};
use serde::Serialize;

use crate::figures::{grouped, is_at_least, percent};
use crate::function_info::FunctionInfo;
use crate::line::{Line, Style};

/// Call stacks merged by function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// Number of samples.
    pub samples: u64,
    /// The functions, those above first, and each before what is below it.
    pub nodes: Vec<TreeNode>,
    /// Number of nodes that are left out, as they have too few samples or are too deep.
    pub left_out: usize,
}

/// A function below others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeNode {
    /// The place of the node above in the list; `None` at the top.
    pub parent: Option<usize>,
    /// The function.
    #[serde(flatten)]
    pub function: FunctionInfo,
    /// Samples that end here.
    pub samples: u64,
    /// Samples that end here or below.
    pub inclusive: u64,
    /// The most frames of the function that stand here one behind the other: more than 1 only of a function without a name.
    pub repeated: u32,
    /// How the lines of the tree are drawn up to here.
    #[serde(skip)]
    prefix: String,
}

/// What is still to be shown.
struct Pending {
    node: NodeId,
    parent: Option<usize>,
    depth: usize,
    /// How the lines of what is above are continued.
    indent: String,
    branch: Branch,
}

/// How a node hangs on the one above it.
#[derive(Clone, Copy)]
enum Branch {
    /// Right below it, as its only callee.
    Only,
    /// One of several.
    Inner,
    /// The last of several.
    Last,
}

/// Stacks may have thousands of frames; lines are not indented further than this.
const DEEPEST_INDENT: usize = 60;

impl TreeNode {
    /// The function's name; of a run, with its length: `[unknown] ×127`.
    fn name(&self) -> String {
        let name = self.function.distinct_name();
        if self.repeated > 1 { format!("{name} ×{}", self.repeated) } else { name }
    }
}

impl Tree {
    /// Of these samples: nodes with at least this part of them, in percent, and not deeper than `max_depth`.
    #[must_use]
    pub fn of(
        profile: &Profile,
        samples: impl Iterator<Item = SampleRow>,
        direction: Direction,
        least: f64,
        max_depth: Option<usize>,
    ) -> Self {
        let tree = CallTree::of(profile, samples, direction);
        let total = |id: &NodeId| tree.node(*id).map_or(0, |node| node.count.total);
        let all: u64 = tree.roots().iter().map(total).sum();
        let is_shown = |id: &&NodeId| is_at_least(total(id), all, least);
        let mut nodes: Vec<TreeNode> = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        let push = |pending: &mut Vec<Pending>,
                    ids: &[NodeId],
                    parent: Option<usize>,
                    depth: usize,
                    indent: &str,
                    whole: Option<u64>| {
            let shown: Vec<&NodeId> = ids.iter().filter(is_shown).collect();
            let is_chain = matches!(shown.as_slice(), [only] if Some(total(only)) == whole);
            for (place, id) in shown.iter().enumerate().rev() {
                let branch = match () {
                    () if is_chain || parent.is_none() => Branch::Only,
                    () if place.saturating_add(1) == shown.len() => Branch::Last,
                    () => Branch::Inner,
                };
                let indent = indent.to_owned();
                pending.push(Pending { node: **id, parent, depth, indent, branch });
            }
        };
        push(&mut pending, tree.roots(), None, 1, "", None);
        while let Some(Pending { node: id, parent, depth, indent, branch }) = pending.pop() {
            let Some(node) = tree.node(id) else { continue };
            let (mark, below) = match branch {
                _ if indent.chars().count() > DEEPEST_INDENT => ("", ""),
                Branch::Only => ("", ""),
                Branch::Inner => ("├─ ", "│  "),
                Branch::Last => ("└─ ", "   "),
            };
            nodes.push(TreeNode {
                parent,
                function: FunctionInfo::of(profile, node.function),
                samples: node.count.own,
                inclusive: node.count.total,
                repeated: node.repeated,
                prefix: format!("{indent}{mark}"),
            });
            if max_depth.is_none_or(|max| depth < max) {
                let place = nodes.len().saturating_sub(1);
                let indent = format!("{indent}{below}");
                let whole = Some(node.count.total);
                push(
                    &mut pending,
                    tree.children(id),
                    Some(place),
                    depth.saturating_add(1),
                    &indent,
                    whole,
                );
            }
        }
        let left_out = tree.nodes().len().saturating_sub(nodes.len());
        Self { samples: all, nodes, left_out }
    }

    /// As a table.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let heading = format!(" {:>7}  {:>7}  {:>11}  function", "total %", "self %", "total");
        let mut lines = vec![Line::of(Style::Heading, heading)];
        for node in &self.nodes {
            // The tree of each function at the top stands by itself.
            if node.parent.is_none() && lines.len() > 1 {
                lines.push(Line::default());
            }
            let style = Style::of_share(node.samples, self.samples);
            lines.push(
                Line::of(Style::Plain, format!(" {:>7}  ", percent(node.inclusive, self.samples)))
                    .with(style, format!("{:>7}", percent(node.samples, self.samples)))
                    .with(Style::Plain, format!("  {:>11}  ", grouped(node.inclusive)))
                    .with(Style::Faint, node.prefix.clone())
                    .with(Style::Plain, node.name()),
            );
        }
        lines.extend(Line::left_out(self.left_out, "node", ", or too deep"));
        lines
    }
}
