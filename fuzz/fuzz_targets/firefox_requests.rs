//! Requests to the server for the Firefox Profiler.
#![no_main]

use jitscribe_fuzz::readers::firefox_requests::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
