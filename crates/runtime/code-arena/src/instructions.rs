//! Synchronises processors before they run new code.
#![allow(unsafe_code)]

/// Makes all processors, and the Valgrind that runs the process, if any, fetch the instructions at
/// `executable` again, of which `written` is another mapping.
pub(crate) fn synchronise(executable: u64, written: u64, size: usize) {
    flush(executable, written, size);
    guest::valgrind::discard_translations(executable, size);
}

/// For processors whose caches are not coherent.
#[cfg(not(target_arch = "aarch64"))]
fn flush(_executable: u64, _written: u64, _size: usize) {}

/// For processors whose caches are not coherent.
#[cfg(target_arch = "aarch64")]
fn flush(executable: u64, written: u64, size: usize) {
    // The smallest possible line.
    const LINE: u64 = 16;
    let lines = |address: u64| {
        (address & !(LINE - 1)..address.saturating_add(size as u64)).step_by(LINE as usize)
    };
    for line in lines(written) {
        // SAFETY: cleans a line of the data cache, for memory that is mapped.
        unsafe { std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in lines(executable) {
        // SAFETY: invalidates a line of the instruction cache, for memory that is mapped.
        unsafe { std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}
