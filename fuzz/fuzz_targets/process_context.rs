//! OpenTelemetry's process context in any memory.
#![no_main]

use jitscribe_fuzz::readers::process_context::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
