//! Jitdumps, the raw level: every record of any bytes, and the writer on what was read.
#![no_main]

use jitscribe_fuzz::readers::jitdump_read::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
