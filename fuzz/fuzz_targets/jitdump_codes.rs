//! Jitdumps, the unified level: what a consumer asks of every code of any bytes.
#![no_main]

use jitscribe_fuzz::readers::jitdump_codes::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
