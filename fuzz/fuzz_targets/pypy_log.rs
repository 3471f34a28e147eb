//! The log of PyPy on any bytes, and its translation.
#![no_main]

use jitscribe_fuzz::readers::pypy_log::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
