//! GDB's JIT list, its objects, and the files that have its head, on any bytes.
#![no_main]

use jitscribe_fuzz::readers::gdb_jit_list::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
