//! The jitdump checker on any bytes.
#![no_main]

use jitscribe_fuzz::readers::jitdump_check::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
