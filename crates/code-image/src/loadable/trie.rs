//! The tree of names in which macOS looks up what a library exports.
//!
//! A node is: the number of bytes of what is said of the name that ends here, that, the number of branches, and for each
//! branch what of the name lies on it and where its node begins (`mach-o/loader.h`, "export information").

use crate::encode::Encoder;
use crate::target::Target;

/// A node as it is built.
#[derive(Default)]
struct Node {
    /// Where the function is whose name ends here.
    value: Option<u64>,
    /// In the order of their names: what lies on a branch, and the number of its node.
    branches: Vec<(Vec<u8>, usize)>,
}

/// The tree of these names, which are in order, each but once, and not empty.
pub(super) fn trie<'a>(target: Target, names: impl Iterator<Item = (&'a [u8], u64)>) -> Vec<u8> {
    let nodes = build(names);
    // Where nodes are takes as many bytes everywhere, so that they can be told their places in one go.
    for width in 1..=5 {
        let mut places = Vec::with_capacity(nodes.len());
        let mut end = 0_u64;
        for node in &nodes {
            places.push(end);
            let branches = node.branches.iter().map(|(label, _)| label.len() as u64 + 1 + width);
            end = branches.fold(end + 1 + said(target, node).len() as u64 + 1, u64::saturating_add);
        }
        if end >= 1 << (7 * width) {
            continue;
        }
        let mut out = Encoder::new(target);
        for node in &nodes {
            let said = said(target, node);
            out.u8(said.len() as u8);
            out.raw(&said);
            // No two begin with the same byte, and none with NUL.
            out.u8(node.branches.len() as u8);
            for (label, number) in &node.branches {
                out.string(label);
                let place = places.get(*number).copied().unwrap_or_default();
                for byte in 0..width {
                    let goes_on = if byte + 1 < width { 0x80 } else { 0 };
                    out.u8((place >> (7 * byte)) as u8 & 0x7f | goes_on);
                }
            }
        }
        return out.bytes;
    }
    Vec::new()
}

/// What is said of the name that ends in a node.
fn said(target: Target, node: &Node) -> Vec<u8> {
    let mut out = Encoder::new(target);
    if let Some(value) = node.value {
        out.uleb(0); // a function or variable like any other
        out.uleb(value);
    }
    out.bytes
}

fn build<'a>(names: impl Iterator<Item = (&'a [u8], u64)>) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    // The nodes on the way to the last name, and how much of it leads to each.
    let mut way: Vec<(usize, usize)> = vec![(0, 0)];
    let mut last: &[u8] = &[];
    for (name, value) in names {
        let common = last.iter().zip(name).take_while(|(a, b)| a == b).count();
        // The last node left behind, whose branch is where the names part.
        let mut left = None;
        while let Some(&(node, depth)) = way.last()
            && depth > common
        {
            left = Some(node);
            way.pop();
        }
        let &(node, depth) = way.last().unwrap_or(&(0, 0));
        let mut from = node;
        if let Some(left) = left
            && depth < common
        {
            // In the middle of a branch: a node comes there.
            let number = nodes.len();
            let branch = nodes.get_mut(node).and_then(|node| node.branches.last_mut());
            if let Some((label, to)) = branch {
                let rest = label.split_off(common.saturating_sub(depth).min(label.len()));
                *to = number;
                nodes.push(Node { value: None, branches: vec![(rest, left)] });
                way.push((number, common));
                from = number;
            }
        }
        let number = nodes.len();
        nodes.push(Node { value: Some(value), branches: Vec::new() });
        let rest = name.get(common..).unwrap_or_default();
        if let Some(node) = nodes.get_mut(from) {
            node.branches.push((rest.to_vec(), number));
        }
        way.push((number, name.len()));
        last = name;
    }
    nodes
}
