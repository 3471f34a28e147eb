//! Code logs: any bytes, which may change between two readings, as those of a process do.
#![no_main]

use jitscribe_fuzz::readers::code_log::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
