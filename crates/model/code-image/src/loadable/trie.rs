//! The tree of names in which macOS looks up the exports of a library.
//!
//! A node consists of: the size of the information about the name that ends here, this information, the number of
//! branches, and for each branch its part of the name and the offset of its node (`mach-o/loader.h`, "export
//! information").

use fallible::Vec;

use crate::encode::Encoder;
use crate::target::Target;

/// A node under construction.
#[derive(Default)]
struct Node {
    /// The address of the function whose name ends here.
    value: Option<u64>,
    /// Sorted by name: the label of each branch, and the index of its node.
    branches: Vec<(Vec<u8>, usize)>,
}

/// Encodes the tree of these names, which must be sorted, unique, and not empty.
pub(super) fn trie<'a>(target: Target, names: impl Iterator<Item = (&'a [u8], u64)>) -> Vec<u8> {
    let nodes = build(names);
    // All node offsets are encoded with the same number of bytes, so that positions can be assigned in one pass.
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
            // No two labels begin with the same byte, and none with NUL.
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

/// The information about the name that ends in a node.
fn said(target: Target, node: &Node) -> Vec<u8> {
    let mut out = Encoder::new(target);
    if let Some(value) = node.value {
        out.uleb(0); // a function or variable like any other
        out.uleb(value);
    }
    out.bytes
}

fn build<'a>(names: impl Iterator<Item = (&'a [u8], u64)>) -> Vec<Node> {
    let mut nodes = fallible::vec![Node::default()];
    // The nodes on the path to the last name, and the length of its prefix up to each.
    let mut way: Vec<(usize, usize)> = fallible::vec![(0, 0)];
    let mut last: &[u8] = &[];
    for (name, value) in names {
        let common = last.iter().zip(name).take_while(|(a, b)| a == b).count();
        // The last node that is left, on whose branch the names differ.
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
            // In the middle of a branch: insert a node there.
            let number = nodes.len();
            let branch = nodes.get_mut(node).and_then(|node| node.branches.last_mut());
            if let Some((label, to)) = branch {
                let rest = label.split_off(common.saturating_sub(depth).min(label.len()));
                *to = number;
                nodes.push(Node { value: None, branches: fallible::vec![(rest, left)] });
                way.push((number, common));
                from = number;
            }
        }
        let number = nodes.len();
        nodes.push(Node { value: Some(value), branches: Vec::new() });
        let rest = name.get(common..).unwrap_or_default();
        if let Some(node) = nodes.get_mut(from) {
            node.branches.push((Vec::from(rest), number));
        }
        way.push((number, name.len()));
        last = name;
    }
    nodes
}
