//! What valgrind's tools write, valid but for some fields.
#![no_main]

use jitscribe_fuzz::{made, readers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(file) = made::lines(bytes, made::valgrind_log) else { return };
    readers::valgrind_log::run(&file);
});
