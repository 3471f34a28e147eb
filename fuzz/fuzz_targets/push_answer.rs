//! Answers of servers that profiles are pushed to.
#![no_main]

use jitscribe_fuzz::readers::push_answer::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
