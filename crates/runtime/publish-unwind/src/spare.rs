//! Where a sorted table has spare rows.

/// Code is rarely smaller, in bytes.
const SMALLEST: u64 = 16;

/// Distributes spare rows over the gaps between codes: each gets as many as codes fit there, up to a limit. So spare rows are
/// where new code can be, and a table is rarely full at one place while it has spare rows elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spare {
    most: usize,
}

impl Spare {
    /// Chooses the limit so that the gaps, of these sizes in bytes, get at most `total` rows.
    pub(crate) fn new(gaps: impl Iterator<Item = u64>, total: usize) -> Self {
        let all = Self { most: total };
        // For each number of bits: the gaps that would get a number of rows with so many bits, and the sum of these.
        let mut classes = [(0_usize, 0_usize); usize::BITS as usize + 1];
        for gap in gaps {
            let rows = all.rows(gap);
            let bits = (usize::BITS - rows.leading_zeros()) as usize;
            if let Some((gaps, sum)) = classes.get_mut(bits) {
                *gaps = gaps.saturating_add(1);
                *sum = sum.saturating_add(rows);
            }
        }
        let mut larger = classes.iter().fold(0_usize, |all, (gaps, _)| all.saturating_add(*gaps));
        let mut smaller = 0_usize;
        let mut most = 0;
        for (bits, (gaps, sum)) in classes.into_iter().enumerate() {
            smaller = smaller.saturating_add(sum);
            larger = larger.saturating_sub(gaps);
            let limit = 1_usize.checked_shl(bits as u32).unwrap_or(usize::MAX);
            if smaller.saturating_add(larger.saturating_mul(limit)) > total {
                break;
            }
            most = limit.min(total);
        }
        Self { most }
    }

    /// The same with a higher limit.
    pub(crate) fn with(self, more: usize) -> Self {
        Self { most: self.most.saturating_add(more) }
    }

    /// Number of spare rows for a gap of this size in bytes.
    pub(crate) fn rows(self, gap: u64) -> usize {
        usize::try_from(gap / SMALLEST).unwrap_or(usize::MAX).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::Spare;

    #[test]
    fn the_rows_are_where_code_fits_and_never_too_many() {
        let cases: [(&[u64], usize, &[usize]); 5] = [
            (&[], 10, &[]),
            // Enough for all.
            (&[160, 16, 0], 16, &[10, 1, 0]),
            // The large gap gets what the small ones leave.
            (&[1 << 40, 16, 15], 18, &[16, 1, 0]),
            (&[1 << 40, 1 << 40, 32], 18, &[8, 8, 2]),
            (&[1 << 40; 4], 3, &[0; 4]),
        ];
        for (gaps, total, rows) in cases {
            let spare = Spare::new(gaps.iter().copied(), total);
            let found: Vec<usize> = gaps.iter().map(|gap| spare.rows(*gap)).collect();
            assert_eq!(found, rows, "{gaps:?} {total}");
        }
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 33
        };
        for _ in 0..1000 {
            let gaps: Vec<u64> = (0..random() % 50).map(|_| 1 << (random() % 40)).collect();
            let total = random() as usize % 1000;
            let spare = Spare::new(gaps.iter().copied(), total);
            assert!(gaps.iter().map(|gap| spare.rows(*gap)).sum::<usize>() <= total);
        }
    }
}
