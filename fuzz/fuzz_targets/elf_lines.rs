//! Debug information of programs, read from any bytes.
#![no_main]

use jitscribe_fuzz::readers::elf_lines::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
