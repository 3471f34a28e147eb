//! Unwind tables of programs, read from any bytes, and stacks that are unwound by them.
#![no_main]

use jitscribe_fuzz::readers::elf_frames::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
