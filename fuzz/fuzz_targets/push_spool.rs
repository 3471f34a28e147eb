//! Files of a spool of profiles.
#![no_main]

use jitscribe_fuzz::readers::push_spool::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
