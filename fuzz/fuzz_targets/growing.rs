//! Maps and dumps that are read while they are written: whatever comes, in whatever pieces, and always the same.
#![no_main]

use jitscribe_fuzz::readers::growing::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8])| run(input));
