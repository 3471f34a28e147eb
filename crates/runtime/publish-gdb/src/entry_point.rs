//! A breakpoint at the beginning of a function, for which the same function is asked again and again.

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::breakpoint::has_breakpoint;

/// How many bytes of a function are one instruction, on every machine, or `endbr64` and one byte.
const LENGTH: u64 = if cfg!(target_arch = "x86_64") { 5 } else { 4 };

/// The beginning of a function, as it was when it was last read.
///
/// The kernel reads it, not the process itself. A debugger that replays a recorded process (rr) has breakpoints in it that were not
/// there when it was recorded: the process would see them, and run differently. The results of system calls are those that were
/// recorded.
#[derive(Debug)]
pub(crate) struct EntryPoint {
    /// Eight bytes of code; zeros, which are none, if it was not read.
    #[cfg(target_os = "linux")]
    bytes: AtomicU64,
}

impl EntryPoint {
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            bytes: AtomicU64::new(0),
        }
    }

    /// Whether a debugger has a breakpoint at the beginning of the function, which is at `address` in each call.
    ///
    /// If nothing has changed since the last call, this takes one or two short system calls, instead of three long ones that open, read
    /// and close `/proc/self/mem`. A descriptor that stays open would give each child of `fork` access to its parent's memory.
    /// `process_vm_readv` would need one call, but filters of system calls may end a process for it.
    pub(crate) fn has_breakpoint(&self, address: u64) -> bool {
        #[cfg(target_os = "linux")]
        {
            use crate::breakpoint::{has_instruction, read};

            let known = self.bytes.load(Relaxed).to_ne_bytes();
            let [first, second] = [[0, 1, 2, 3], [4, 5, 6, 7]].map(|at| at.map(|at| known[at]));
            let is_same = known != [0; 8]
                && guest::is_word_at(address, first)
                && (LENGTH <= 4 || guest::is_word_at(address.saturating_add(4), second));
            let bytes = if is_same { Some(known) } else { read(address) };
            self.bytes.store(bytes.map_or(0, u64::from_ne_bytes), Relaxed);
            if let Some(bytes) = bytes {
                return has_instruction(bytes.get(..LENGTH as usize).unwrap_or_default());
            }
        }
        // The function may be shorter, at the end of what is mapped.
        has_breakpoint(address..address.saturating_add(LENGTH))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{EntryPoint, LENGTH};
    use crate::breakpoint::INSTRUCTION;

    #[test]
    fn a_breakpoint_comes_and_goes() {
        #[repr(align(8))]
        struct Function([u8; 16]);
        // Also where a word is not in one place, so that it is read each time.
        for at in [0, 1] {
            let mut function = Function([0x90; 16]);
            let address = function.0[at..].as_ptr().addr() as u64;
            let entry_point = EntryPoint::new();
            for places in [0, LENGTH as usize - INSTRUCTION.len(), 0] {
                let place = at + places..at + places + INSTRUCTION.len();
                assert!(!entry_point.has_breakpoint(address));
                assert!(!entry_point.has_breakpoint(address));
                function.0[place.clone()].copy_from_slice(INSTRUCTION);
                std::hint::black_box(&function);
                assert!(entry_point.has_breakpoint(address), "{place:?}");
                assert!(entry_point.has_breakpoint(address), "{place:?}");
                function.0[place].fill(0x90);
                std::hint::black_box(&function);
            }
            let behind = at + LENGTH as usize;
            function.0[behind..behind + INSTRUCTION.len()].copy_from_slice(INSTRUCTION);
            std::hint::black_box(&function);
            assert!(!entry_point.has_breakpoint(address), "it is in another function");
        }
        assert!(!EntryPoint::new().has_breakpoint(16), "nothing is mapped there");
    }
}
