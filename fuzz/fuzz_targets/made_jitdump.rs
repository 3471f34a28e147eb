//! Jitdumps that are valid but for some fields, through every reader of them.
#![no_main]

use jitscribe_fuzz::{made, readers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(file) = made::binary(bytes, made::jitdump) else { return };
    readers::jitdump_read::run(&file);
    readers::jitdump_codes::run(&file);
    readers::jitdump_check::run(&file);
    readers::growing::run((&[7, 200, 3], &file));
});
