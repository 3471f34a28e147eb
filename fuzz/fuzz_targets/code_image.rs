//! An ELF image of whatever a dump of any bytes holds, and objects for loaders.
#![no_main]

use jitscribe_fuzz::readers::code_image::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| run(input));
