//! The last code at each address.

use std::collections::HashMap;
use std::ops::Range;

use code_timeline::ranges::{Canvas, merge, overlapping};

use super::read::Code;

/// A range of addresses, and the number of the code that owns it.
type Piece = (Range<u64>, u32);

/// The last owner of every address.
#[derive(Debug)]
pub struct Owners {
    /// First those that are at least partly visible. Then, if any code replaced another one, all others.
    codes: Vec<Code>,
    /// Indices into `codes`, in the order of the loads; empty if no code replaced another one.
    loads: Vec<u32>,
    /// Sorted by address, disjoint; the numbers are indices into `codes`.
    pieces: Vec<Piece>,
    /// Ranges that held another code before; sorted by address, disjoint.
    others: Vec<Range<u64>>,
    /// By the hash of a name, the last owner among the codes of that name, for every address; sorted by address, disjoint.
    by_name: Option<HashMap<u64, Vec<Piece>>>,
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
        let mut pieces: Vec<Piece> = Vec::new();
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
        let mut loads = Vec::new();
        if !others.is_empty() {
            let number = |id: &mut Option<u32>| {
                *id.get_or_insert_with(|| {
                    count += 1;
                    count - 1
                })
            };
            loads = kept.iter_mut().map(number).collect();
        }
        let mut seen: Vec<(u32, Code)> =
            kept.into_iter().zip(codes).filter_map(|(id, code)| Some((id?, code))).collect();
        seen.sort_unstable_by_key(|&(id, _)| id);
        let codes = seen.into_iter().map(|(_, code)| code).collect();
        Self { codes, loads, pieces, others, by_name: None }
    }

    /// Among the codes whose names have this hash, the last owner of an address that had several owners.
    pub fn named_at(&mut self, name: u64, address: u64) -> Option<Piece> {
        let Self { codes, loads, by_name, .. } = self;
        let by_name = by_name.get_or_insert_with(|| {
            let mut painted: HashMap<u64, Canvas<u32>> = HashMap::new();
            for &id in loads.iter() {
                let code = &codes[id as usize];
                painted.entry(code.name).or_default().paint(code.range(), id);
            }
            let visible = |canvas: Canvas<u32>| canvas.visible().collect();
            painted.into_iter().map(|(name, canvas)| (name, visible(canvas))).collect()
        });
        owner_at(by_name.get(&name)?, address)
    }

    /// The owner of `address`, and the range around it with the same owner.
    pub fn at(&self, address: u64) -> Option<(Range<u64>, u32)> {
        owner_at(&self.pieces, address)
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

/// The piece that contains `address`.
fn owner_at(pieces: &[Piece], address: u64) -> Option<Piece> {
    let behind = pieces.partition_point(|(range, _)| range.start <= address);
    let (range, id) = pieces.get(behind.checked_sub(1)?)?;
    range.contains(&address).then(|| (range.clone(), *id))
}
