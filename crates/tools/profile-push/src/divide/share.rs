//! Which samples a half gets.

use std::ops::Range;

/// Where the samples of a half are among all samples; `None` if there is only one.
pub(super) fn ranges(samples: u64) -> Option<[Range<u64>; 2]> {
    let middle = samples.checked_div(2).filter(|middle| *middle > 0)?;
    Some([0..middle, middle..samples])
}
