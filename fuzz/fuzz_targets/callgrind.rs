//! Profiles of callgrind's: rewriting any bytes, and reading what came out.
#![no_main]

#[path = "../../crates/callgrind/tests/common/mod.rs"]
mod common;

use common::{Map, Nothing, sums};
use jitscribe_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut out = Vec::new();
    let Ok(summary) = callgrind::rewrite(bytes, &mut out, &mut Map) else { return };
    // Not an instruction is lost.
    assert_eq!(sums(&out), sums(bytes));
    // What came out is a profile, and what was named in it is not unknown any more.
    let mut again = Vec::new();
    let left = callgrind::rewrite(&*out, &mut again, &mut Nothing).expect("a profile");
    for ((left, unknown), named) in left.unknown.iter().zip(&summary.unknown).zip(&summary.named) {
        assert!(*unknown == u64::MAX || *left == unknown - named);
    }
});
