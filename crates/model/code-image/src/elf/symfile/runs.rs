//! The sections of a symfile: runs of codes that lie next to one another.
//!
//! gdb sorts the sections of all its files again after each new file, so that few sections are faster than many. A section must
//! not cover code of another file, because gdb would then know neither: it covers the space between two codes only if that is as
//! small as padding, and free.

use std::ops::Range;

use fallible::Vec;

use super::fragment::Fragment;

/// The largest gap in bytes between codes of one section.
pub const LARGEST_GAP: u64 = 64;

/// The codes of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) addresses: Range<u64>,
    /// How many codes it has.
    pub(super) count: usize,
}

/// Splits codes that are sorted by address into runs. `is_free` tells of the addresses between two codes whether no other
/// code is there.
pub(super) fn runs(fragments: &[Fragment<'_>], is_free: &dyn Fn(Range<u64>) -> bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for Fragment { code, .. } in fragments {
        let end = code.start.saturating_add(code.size);
        if let Some(run) = runs.last_mut() {
            let gap = run.addresses.end..code.start;
            let is_small = gap.end.checked_sub(gap.start).is_some_and(|size| size <= LARGEST_GAP);
            if is_small && (gap.is_empty() || is_free(gap)) {
                run.addresses.end = end;
                run.count = run.count.saturating_add(1);
                continue;
            }
        }
        runs.push(Run { addresses: code.start..end, count: 1 });
    }
    runs
}

/// The names of this many sections, each with its NUL: `.text`, which lldb wants to see, and then `.text.1` and so on. They are
/// distinct because lldb finds a symbol's section by its name.
pub(super) fn names(count: usize) -> Vec<u8> {
    let mut names = Vec::new();
    for number in 0..count {
        names.extend_from_slice(b".text");
        if number > 0 {
            names.push(b'.');
            push_decimal(number, &mut names);
        }
        names.push(0);
    }
    names
}

fn push_decimal(number: usize, out: &mut Vec<u8>) {
    if number >= 10 {
        push_decimal(number / 10, out);
    }
    out.push(b'0'.saturating_add((number % 10) as u8));
}
