//! The last code at each address.

use std::ops::Range;

use code_timeline::ranges::{Canvas, merge, overlapping};

use super::read::Code;

/// The last owner of every address.
#[derive(Debug)]
pub struct Owners {
    /// Codes that are at least partly visible.
    codes: Vec<Code>,
    /// Sorted by address, disjoint; the numbers are indices into `codes`.
    pieces: Vec<(Range<u64>, u32)>,
    /// Ranges that held another code before; sorted by address, disjoint.
    others: Vec<Range<u64>>,
}

impl Owners {
    /// Computes the owners from codes in the order of their loads.
    pub fn of(codes: Vec<Code>) -> Self {
        let mut canvas: Canvas<u32> = Canvas::new();
        let mut others: Vec<Range<u64>> = Vec::new();
        let numbered: Vec<(u32, &Code)> = (0..).zip(&codes).collect();
        // Two files may describe the same code in different ways, so only codes of the same file are compared.
        for of_file in numbered.chunk_by(|(_, a), (_, b)| a.origin.file() == b.origin.file()) {
            let mut painted: Canvas<u32> = Canvas::new();
            for &(id, code) in of_file {
                let range = code.range();
                // Each piece visited here is painted over or cut at one of its two ends, so the total work is bounded.
                for under in painted.under(&range) {
                    let below = &codes[under as usize];
                    if !below.is_like(code) {
                        let shared = below.range();
                        others.push(shared.start.max(range.start)..shared.end.min(range.end));
                    }
                }
                painted.paint(range, id);
            }
            for (range, id) in painted.visible() {
                canvas.paint(range, id);
            }
        }
        others.sort_unstable_by_key(|range| range.start);
        let others = merge(others, |_| false);

        let mut kept: Vec<Option<u32>> = vec![None; codes.len()];
        let mut pieces: Vec<(Range<u64>, u32)> = Vec::new();
        let mut count = 0;
        for (range, id) in canvas.visible() {
            let id = *kept[id as usize].get_or_insert_with(|| {
                count += 1;
                count - 1
            });
            match pieces.last_mut() {
                Some((last, of)) if last.end == range.start && *of == id => last.end = range.end,
                _ => pieces.push((range, id)),
            }
        }
        let mut seen: Vec<(u32, Code)> =
            kept.into_iter().zip(codes).filter_map(|(id, code)| Some((id?, code))).collect();
        seen.sort_unstable_by_key(|&(id, _)| id);
        let codes = seen.into_iter().map(|(_, code)| code).collect();
        Self { codes, pieces, others }
    }

    /// The owner of `address`, and the range around it with the same owner.
    pub fn at(&self, address: u64) -> Option<(Range<u64>, u32)> {
        let behind = self.pieces.partition_point(|(range, _)| range.start <= address);
        let (range, id) = self.pieces.get(behind.checked_sub(1)?)?;
        range.contains(&address).then(|| (range.clone(), *id))
    }

    /// All ranges, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, u32)> {
        self.pieces.iter().cloned()
    }

    /// The code with this number.
    pub fn code(&self, id: u32) -> &Code {
        &self.codes[id as usize]
    }

    /// Whether `address` had another owner before.
    pub fn is_ambiguous_at(&self, address: u64) -> bool {
        !overlapping(&self.others, &(address..address.saturating_add(1))).is_empty()
    }

    /// Whether nothing is owned.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}
