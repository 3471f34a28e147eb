//! Machine code of any kind.
#![no_main]

use jitscribe_fuzz::readers::disassembly::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
