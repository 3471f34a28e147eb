//! Finds the rectangles over an address: a segment tree whose nodes are sorted by time.
//!
//! Every piece is stored at the O(log n) nodes that together make up its address range. All pieces at one node cover
//! the same addresses, and pieces never overlap, so the pieces of a node follow one another in time. A walk from leaf
//! to root with a binary search at each node answers a query.
//!
//! If no address ever had two codes, every second leaf is a piece, and there is no tree.

use alloc::vec::Vec;
use core::ops::Range;

use crate::piece::Piece;

/// Bounds that are searched at once: a few consecutive cache lines.
const BLOCK: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct StabbingIndex {
    /// Where pieces begin or end, ascending. Leaf i is `bounds[i]..bounds[i + 1]`. Without a tree, a leaf may be
    /// empty if it is between two pieces.
    bounds: Vec<u64>,
    /// Every [`BLOCK`]th of these: few enough to stay in the processor's cache.
    blocks: Vec<u64>,
    /// For each node, where its pieces begin in `pieces`; one more than there are nodes. `None` without a tree.
    begins: Option<Vec<u32>>,
    /// Piece numbers by node and, within a node, by time. Without a tree, all numbers from 0 on.
    pieces: Vec<u32>,
}

impl StabbingIndex {
    pub(crate) fn new(pieces: &[Piece]) -> Self {
        let mut bounds: Vec<u64> = Vec::with_capacity(2 * pieces.len());
        bounds.extend(pieces.iter().flat_map(|piece| [piece.range.start, piece.range.end]));
        if bounds.is_sorted() {
            let blocks = bounds.iter().copied().step_by(BLOCK).collect();
            let pieces = (0..).take(pieces.len()).collect();
            return Self { bounds, blocks, begins: None, pieces };
        }
        bounds.sort_unstable();
        bounds.dedup();

        let leaves = bounds.len().saturating_sub(1);
        let mut hung: Vec<(u32, u64, u32)> = Vec::with_capacity(pieces.len());
        // Pieces are sorted by address, so each begins at or behind the leaf of the previous one.
        let mut first = 0;
        for (number, piece) in pieces.iter().enumerate() {
            while bounds[first] < piece.range.start {
                first += 1;
            }
            let mut low = leaves + first;
            // Most pieces are one leaf.
            let mut high = match bounds[first + 1] {
                end if end == piece.range.end => low + 1,
                _ => low + bounds[first..].partition_point(|&bound| bound < piece.range.end),
            };
            while low < high {
                if low % 2 == 1 {
                    hung.push((low as u32, piece.since, number as u32));
                    low += 1;
                }
                if high % 2 == 1 {
                    high -= 1;
                    hung.push((high as u32, piece.since, number as u32));
                }
                low /= 2;
                high /= 2;
            }
        }
        hung.sort_unstable();

        let mut begins = Vec::with_capacity(2 * leaves + 1);
        let mut before = 0;
        for node in 0..=2 * leaves {
            begins.push(before as u32);
            before += hung[before..].iter().take_while(|(at, ..)| *at as usize == node).count();
        }
        let blocks = bounds.iter().copied().step_by(BLOCK).collect();
        let pieces = hung.into_iter().map(|(.., piece)| piece).collect();
        Self { bounds, blocks, begins: Some(begins), pieces }
    }

    /// Whether no address is in two pieces.
    pub(crate) fn is_flat(&self) -> bool {
        self.begins.is_none()
    }

    /// The nodes over `address`, each as the numbers of its pieces in the order of time.
    pub(crate) fn nodes(&self, address: u64) -> impl Iterator<Item = &[u32]> {
        self.nodes_above(self.leaf(address))
    }

    /// The nodes over `address`, and the range of addresses that have the same nodes.
    pub(crate) fn nodes_and_range(
        &self,
        address: u64,
    ) -> (impl Iterator<Item = &[u32]>, Range<u64>) {
        let leaf = self.leaf(address);
        let bound = |number: usize| self.bounds.get(number).copied();
        let start = leaf.checked_sub(1).and_then(bound).unwrap_or(0);
        (self.nodes_above(leaf), start..bound(leaf).unwrap_or(u64::MAX))
    }

    /// The number of the leaf over `address`, from 1. 0 and the number behind the last leaf are outside the bounds.
    fn leaf(&self, address: u64) -> usize {
        let block = self.blocks.partition_point(|&bound| bound <= address);
        let Some(start) = block.checked_sub(1).map(|before| before * BLOCK) else { return 0 };
        let end = self.bounds.len().min(start + BLOCK);
        start + self.bounds[start..end].partition_point(|&bound| bound <= address)
    }

    fn nodes_above(&self, leaf: usize) -> impl Iterator<Item = &[u32]> {
        let leaves = self.bounds.len().saturating_sub(1);
        // 0 is not a node: outside the bounds there is nothing to walk.
        let first = match &self.begins {
            Some(_) if leaf == 0 || leaf > leaves => 0,
            Some(_) => leaves + leaf - 1,
            // Behind an odd number of bounds there is a piece.
            None => leaf % 2 * leaf.div_ceil(2),
        };
        core::iter::successors(Some(first), |node| Some(if self.is_flat() { 0 } else { node / 2 }))
            .take_while(|&node| node > 0)
            .map(|node| match &self.begins {
                Some(begins) => &self.pieces[begins[node] as usize..begins[node + 1] as usize],
                None => &self.pieces[node - 1..node],
            })
    }
}
