//! Profiles of callgrind's: rewriting any bytes, and reading what came out.
#![no_main]

use jitscribe_fuzz::readers::callgrind::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
