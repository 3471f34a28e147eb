//! Breakpoints that a debugger has placed in code.

#[cfg(unix)]
use std::fs::File;
use std::ops::Range;
#[cfg(unix)]
use std::os::unix::fs::FileExt;

/// The instruction that gdb writes over code for a breakpoint, on this machine.
#[cfg(unix)]
pub(crate) const INSTRUCTION: &[u8] = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
    &[0xcc] // int3
} else if cfg!(target_arch = "aarch64") {
    &[0, 0, 0x20, 0xd4] // brk #0
} else if cfg!(target_arch = "riscv64") {
    &[0x02, 0x90] // c.ebreak
} else {
    &[0xf0, 0x01, 0xf0, 0xe7] // arm: an undefined instruction that Linux reports as a breakpoint
};

/// Whether this code contains it.
#[cfg(unix)]
pub(crate) fn has_instruction(code: &[u8]) -> bool {
    code.windows(INSTRUCTION.len()).any(|window| window == INSTRUCTION)
}

/// The eight bytes at an address, as [`has_breakpoint`] reads them. `None` if that is not possible.
#[cfg(target_os = "linux")]
pub(crate) fn read(address: u64) -> Option<[u8; 8]> {
    let memory = File::open("/proc/self/mem").ok()?;
    let mut bytes = [0; 8];
    memory.read_at(&mut bytes, address).is_ok_and(|read| read == bytes.len()).then_some(bytes)
}

/// Whether code at these addresses contains the instruction of a debugger's breakpoint, or bytes that look like it. Memory that is
/// not there or cannot be read contains none.
#[cfg(unix)]
#[must_use]
pub fn has_breakpoint(addresses: Range<u64>) -> bool {
    // Memory that may only be executed can be read this way, and memory that is gone is an error and not a signal.
    let Ok(memory) = File::open("/proc/self/mem") else { return false };
    let mut buffer = [0; 4096];
    let mut at = addresses.start;
    while at < addresses.end {
        let left = usize::try_from(addresses.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let Some(part) = buffer.get_mut(..left.min(4096)) else { return false };
        match memory.read_at(part, at) {
            Ok(read) if read >= INSTRUCTION.len() => {
                let read = part.get(..read).unwrap_or_default();
                if has_instruction(read) {
                    return true;
                }
                // Blocks overlap, so that an instruction at their border is seen.
                at = at.saturating_add((read.len() - (INSTRUCTION.len() - 1)) as u64);
            }
            _ => return false,
        }
    }
    false
}

/// Whether code at these addresses contains the instruction of a debugger's breakpoint. On Windows, this is not known.
#[cfg(not(unix))]
#[must_use]
pub fn has_breakpoint(_: Range<u64>) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::{INSTRUCTION, has_breakpoint};

    #[test]
    fn an_instruction_is_found_wherever_it_is() {
        let mut code = vec![0x90_u8; 10_000];
        let start = code.as_ptr().addr() as u64;
        let addresses = start..start + code.len() as u64;
        assert!(!has_breakpoint(addresses.clone()));
        for at in [0, 4094, 4095, 4096, 9_990] {
            code[at..at + INSTRUCTION.len()].copy_from_slice(INSTRUCTION);
            std::hint::black_box(&code);
            assert!(has_breakpoint(addresses.clone()), "{at}");
            code[at..at + INSTRUCTION.len()].fill(0x90);
        }
        assert!(!has_breakpoint(1..4096), "nothing is mapped there");
    }
}
