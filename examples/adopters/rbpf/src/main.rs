//! Runs an eBPF program by rbpf's JIT for some seconds of processor time: `rbpf-jit SECONDS`. rbpf announces it, patched.

use std::error::Error;
use std::ffi::c_long;
use std::io;

/// Lines 3 to 7 are the loop.
const PROGRAM: &str = "\
mov64 r0, 1
mov64 r1, 1000000
mul64 r0, 31
xor64 r0, r1
rsh64 r0, 1
sub64 r1, 1
jne r1, 0, -5
exit";

unsafe extern "C" {
    /// Of C: microseconds of processor time. On a busy machine, real time would be too few samples.
    safe fn clock() -> c_long;
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: c_long = std::env::args().nth(1).ok_or("usage: rbpf-jit SECONDS")?.parse()?;
    let program = rbpf::assembler::assemble(PROGRAM).map_err(io::Error::other)?;
    let mut vm = rbpf::EbpfVmNoData::new(Some(&program))?;
    vm.jit_compile()?;
    let end = clock() + seconds * 1_000_000;
    while clock() < end {
        // SAFETY: the program touches no memory.
        unsafe { vm.execute_program_jit()? };
    }
    Ok(())
}
