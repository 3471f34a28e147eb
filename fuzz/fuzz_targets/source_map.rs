//! Source maps and the comments that name them, of any bytes.
#![no_main]

use jitscribe_fuzz::readers::source_map::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
