//! Profiles of callgrind's: rewriting any bytes, and reading what came out.
#[path = "../../../crates/formats/callgrind/tests/it/common/mod.rs"]
mod common;

use common::{Map, Nothing, sums};

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let mut out = Vec::new();
    if callgrind_profile::rewrite(bytes, &mut out, &mut Map).is_err() {
        return;
    }
    // Not an instruction is lost.
    assert_eq!(sums(&out), sums(bytes));
    // Numbers of names that are given anew may say something else there, but it is read.
    let _ = callgrind_profile::rewrite(&*out, &mut Vec::new(), &mut Nothing);
}
