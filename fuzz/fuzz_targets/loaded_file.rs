//! What is loaded of a program, put together from any memory.
#![no_main]

use jitscribe_fuzz::readers::loaded_file::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
