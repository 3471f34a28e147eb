//! Code that is found in the memory of a process, on any bytes.
#![no_main]

use jitscribe_fuzz::readers::found_code::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
