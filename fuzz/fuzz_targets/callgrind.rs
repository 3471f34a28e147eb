//! Profiles of callgrind's: rewriting any bytes, and reading what came out.
#![no_main]

#[path = "../../crates/callgrind/tests/common/mod.rs"]
mod common;

use common::{Map, Nothing, sums};
use jitscribe_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut out = Vec::new();
    if callgrind::rewrite(bytes, &mut out, &mut Map).is_err() {
        return;
    }
    // Not an instruction is lost.
    assert_eq!(sums(&out), sums(bytes));
    // Numbers of names that are given anew may say something else there, but it is read.
    let _ = callgrind::rewrite(&*out, &mut Vec::new(), &mut Nothing);
});
