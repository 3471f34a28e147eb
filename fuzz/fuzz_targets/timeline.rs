//! The timeline against the plainest one there is: a table of who is at each address.
#![no_main]

use jitscribe_fuzz::readers::timeline::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
