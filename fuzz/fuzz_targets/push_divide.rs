//! Profiles that are divided into requests.
#![no_main]

use jitscribe_fuzz::readers::push_divide::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
