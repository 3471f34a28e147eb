//! Profiles of recordings: unwinding, naming, and the list of codes.
#![no_main]

use jitscribe_fuzz::readers::profile_recording::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
