//! Controls when other threads of a process run under Valgrind.
#![allow(unsafe_code)]

/// Starts a new time slice for this thread, so that other threads do not interrupt what follows.
///
/// Valgrind runs one thread at a time, for a slice of 100,000 blocks of code, or until it waits in a system call. An
/// instruction for spin loops cuts the slice to 300 blocks; then the other threads run, and then this thread gets a
/// full slice.
///
/// The profile counts each of these instructions, so there are only as many as blocks. A block ends at an indirect
/// jump; of a loop without one, Valgrind makes a block of several rounds.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub(crate) fn begin() {
    // SAFETY: a pause, and a loop that counts down in its own registers. A round is two blocks of one instruction each.
    unsafe {
        std::arch::asm!(
            "pause",
            "mov ecx, 200",
            "lea {again}, [rip + 2f]",
            "2:",
            "loop 3f",
            "jmp 4f",
            "3:",
            "jmp {again}",
            "4:",
            out("rcx") _,
            again = out(reg) _,
            options(nomem, nostack),
        );
    }
}

/// Starts a new time slice for this thread, so that other threads do not interrupt what follows. Like on x86-64.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little"))]
pub(crate) fn begin() {
    // SAFETY: a hint, and a loop that counts down in its own registers, in rounds of two blocks. The register of the
    // indirect jump is one that may jump to a "bti c", which is there.
    unsafe {
        std::arch::asm!(
            "yield",
            "mov {count:w}, #200",
            "adr x16, 2f",
            "2:",
            "hint #34",
            "subs {count:w}, {count:w}, #1",
            "b.ne 3f",
            "b 4f",
            "3:",
            "br x16",
            "4:",
            count = out(reg) _,
            out("x16") _,
            options(nomem, nostack),
        );
    }
}

/// Never called: Valgrind is never found.
#[cfg(not(any(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little")
)))]
pub(crate) fn begin() {}
