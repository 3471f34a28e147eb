//! What valgrind's tools write: each reader on any bytes. The first byte says which.
#![no_main]

use jitscribe_fuzz::readers::valgrind_log::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
