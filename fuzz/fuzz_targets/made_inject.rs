//! Recordings with a jitdump and a perf map, valid but for some fields, through all of `inject`.
#![no_main]

use jitscribe_fuzz::{made, readers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some([recording, dump, map]) = made::recording_with_code(bytes) else { return };
    readers::inject::run(recording, &dump, &map);
});
