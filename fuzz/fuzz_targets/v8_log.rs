//! The code log of V8 on any bytes.
#![no_main]

use jitscribe_fuzz::readers::v8_log::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
