//! What a processor must be told before it runs what was written.
#![allow(unsafe_code)]

/// Has all processors, and the valgrind that runs the process if one does, fetch instructions anew that lie at
/// `executable`, where `written` is another view of them.
pub(crate) fn synchronise(executable: u64, written: u64, size: usize) {
    flush(executable, written, size);
    valgrind_request::discard_translations(executable, size);
}

/// What a processor needs whose caches do not know of each other.
#[cfg(not(target_arch = "aarch64"))]
fn flush(_executable: u64, _written: u64, _size: usize) {}

/// What a processor needs whose caches do not know of each other.
#[cfg(target_arch = "aarch64")]
fn flush(executable: u64, written: u64, size: usize) {
    // The smallest line that there is.
    const LINE: u64 = 16;
    let lines = |address: u64| {
        (address & !(LINE - 1)..address.saturating_add(size as u64)).step_by(LINE as usize)
    };
    for line in lines(written) {
        // SAFETY: cleans a line of the data cache of memory that is mapped.
        unsafe { std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in lines(executable) {
        // SAFETY: forgets a line of the instruction cache of memory that is mapped.
        unsafe { std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}
