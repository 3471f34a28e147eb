//! Which samples a report shows, if there are too many.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

/// Draws samples, each with the same probability.
///
/// Whether one is drawn depends on its row alone, so that two reports of the same tables have the same samples, in whatever order the engine reads
/// the files.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    probability: f64,
}

impl Draw {
    /// Of all samples, about `most`; all of them if there are no more.
    pub fn new(all: u64, most: u64) -> Self {
        // 2^53 samples are a million hosts' for decades.
        Self { probability: if all <= most { 1.0 } else { most as f64 / all as f64 } }
    }

    /// Whether all samples are drawn.
    pub fn is_all(self) -> bool {
        self.probability >= 1.0
    }

    /// How many samples are drawn of a row that has this many.
    pub fn of(self, count: u64, row: impl Hash) -> u64 {
        if self.is_all() {
            return count;
        }
        let mut hasher = FxHasher::default();
        row.hash(&mut hasher);
        let expected = count as f64 * self.probability;
        let whole = expected.floor();
        let one_more = uniform(hasher.finish()) < expected - whole;
        (whole as u64).saturating_add(one_more.into())
    }
}

/// A number from 0 to 1 (without it) from a hash, all of whose bits matter (the last steps of splitmix64).
fn uniform(hash: u64) -> f64 {
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = mixed ^ (mixed >> 31);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_drawn_if_they_are_few() {
        let draw = Draw::new(100, 100);
        assert!(draw.is_all());
        assert_eq!(draw.of(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn rows_keep_their_share() {
        let draw = Draw::new(10_000_000, 10_000);
        let drawn = |count: u64, rows: u64| -> u64 {
            (0..rows).map(|row| draw.of(count, (row, count))).sum()
        };
        // A thousandth of each kind of row: the numbers are the same in each run.
        for (count, rows) in [(1, 1_000_000), (40, 25_000), (100_000, 10)] {
            let drawn = drawn(count, rows) as f64;
            assert!((drawn - 1000.0).abs() < 4.0 * 1000.0_f64.sqrt(), "{count}: {drawn}");
        }
        assert_eq!(draw.of(7, "row"), draw.of(7, "row"));
    }
}
