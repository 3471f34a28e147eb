//! Any bytes as a minidump with a stream of JIT-compiled code, as such a stream, and as a snapshot.
#![no_main]

use jitscribe_fuzz::readers::crash_stream::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
