//! Division of code into arenas: an arena is the memory range and the code that one object file covers.

use std::ops::Range;

/// Code that is at least this far apart goes into different files. Holes take no space on disk, but tools that copy or map a
/// whole file see them.
pub const ARENA_GAP: u64 = 16 << 20;

/// The maximum size of an arena, unless a single item is larger: offsets within an image must fit into 31 bits, with space for
/// the unwind tables.
pub const ARENA_SPAN: u64 = 1 << 30;

/// Groups items, which are sorted by address and disjoint, into arenas.
pub fn split_into_arenas<T>(items: &[T], range_of: impl Fn(&T) -> Range<u64>) -> Vec<&[T]> {
    let mut arenas = Vec::new();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let Range { start, mut end } = range_of(first);
        let mut count = 1;
        for next in rest[1..].iter().map(&range_of) {
            if next.start.saturating_sub(end) >= ARENA_GAP
                || next.end.saturating_sub(start) > ARENA_SPAN
            {
                break;
            }
            end = next.end;
            count += 1;
        }
        let (arena, behind) = rest.split_at(count);
        arenas.push(arena);
        rest = behind;
    }
    arenas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_grouped_by_distance_and_span() {
        let of = |ranges: &[Range<u64>]| {
            split_into_arenas(ranges, Range::clone)
                .iter()
                .map(|arena| arena.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), [0; 0]);
        assert_eq!(
            of(&[
                0..8,
                16..24,
                24 + ARENA_GAP - 1..25 + ARENA_GAP,
                25 + 2 * ARENA_GAP..26 + 2 * ARENA_GAP
            ]),
            [3, 1]
        );
        let half = ARENA_SPAN / 2;
        assert_eq!(of(&[0..half, half..ARENA_SPAN, ARENA_SPAN..ARENA_SPAN + 1]), [2, 1]);
        assert_eq!(of(&[0..1, 1..ARENA_SPAN + 2, ARENA_SPAN + 2..ARENA_SPAN + 3]), [1, 1, 1]);
        assert_eq!(of(&[u64::MAX - 2..u64::MAX - 1, u64::MAX - 1..u64::MAX]), [2]);
    }
}
