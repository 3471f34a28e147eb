//! Recordings that are valid but for some fields.
#![no_main]

use jitscribe_fuzz::{made, readers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(file) = made::binary(bytes, made::perf_data) else { return };
    readers::perf_data::run(&file);
});
