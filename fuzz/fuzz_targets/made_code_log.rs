//! Code logs that are valid but for some fields.
#![no_main]

use jitscribe_fuzz::{made, readers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(file) = made::binary(bytes, made::code_log) else { return };
    readers::code_log::run(&file);
});
