//! The resolver compared with the simplest one: search every entry for every address.

use perf_map::{Entry, find, resolve};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::seconds;

fn entry(line: u64, address: u64, size: u64) -> Entry<'static> {
    Entry { offset: line * 10, line, address, size, name: b"name" }
}

#[test]
fn a_range_past_the_end_of_the_address_space_is_cut_there() {
    let pieces = resolve([entry(1, u64::MAX - 1, 100), entry(2, u64::MAX, 1)]);
    let [piece] = pieces[..] else { panic!("{pieces:?}") };
    assert_eq!((piece.address, piece.size, piece.entry.line), (u64::MAX - 1, 1, 1));
}

#[test]
fn a_stack_of_a_million_takes_no_time() {
    // Each entry is inside the previous one, the worst case for a sweep that examines all open entries.
    let nested = (0..1_000_000).map(|n| entry(n, n, 3_000_000 - 2 * n));
    let start = seconds();
    assert_eq!(resolve(nested).len(), 1_999_999);
    assert!(seconds() - start < 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_address_belongs_to_the_latest_entry_over_it(ranges in vec((0_u64..64, 0_u64..24), 0..24)) {
        let entries: Vec<_> =
            (1..).zip(&ranges).map(|(line, &(address, size))| entry(line, address, size)).collect();
        let pieces = resolve(entries.iter().copied());

        for address in 0..100 {
            let latest = entries.iter().rev().find(|e| (e.address..e.end()).contains(&address));
            prop_assert_eq!(find(&pieces, address).map(|piece| &piece.entry), latest);
        }
        for piece in &pieces {
            prop_assert!(piece.size > 0);
            prop_assert!(piece.address >= piece.entry.address && piece.end() <= piece.entry.end());
        }
        for pair in pieces.windows(2) {
            prop_assert!(pair[0].end() <= pair[1].address);
            let touching = pair[0].end() == pair[1].address;
            prop_assert!(!(touching && pair[0].entry == pair[1].entry), "one piece in two");
        }
        prop_assert!(pieces.len() <= entries.len() * 2);
    }
}
