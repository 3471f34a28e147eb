//! perf.data recordings: files and pipes, compressed or not, and the writer on what was read.
#![no_main]

use jitscribe_fuzz::readers::perf_data::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
