//! Which code was where, from sources of any bytes.
#![no_main]

use jitscribe_fuzz::readers::code_index::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
