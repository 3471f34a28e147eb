//! Perf maps: reader, resolver, checker and writer on any bytes.
#![no_main]

use jitscribe_fuzz::readers::perf_map::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
