//! What a processor must be told before it runs what was written.
#![allow(unsafe_code)]

/// Has all processors, and the valgrind that runs the process if one does, fetch instructions anew that lie at
/// `executable`, where `written` is another view of them.
pub(crate) fn synchronise(executable: u64, written: u64, size: usize) {
    flush(executable, written, size);
    forget_translations(executable, size);
}

/// `VALGRIND_DISCARD_TRANSLATIONS`: valgrind looks for code that has changed in memory that is no file's, and nowhere
/// else. Elsewhere than under valgrind it does nothing.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
fn forget_translations(address: u64, size: usize) {
    let question: [u64; 6] = [DISCARD_TRANSLATIONS, address, size as u64, 0, 0, 0];
    // SAFETY: four rotations by 64 x 2 bits in all leave rdi as it was, and exchanging rbx with itself does nothing; the
    // flags that change are not declared to be kept. Under valgrind, rdx is written.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") question.as_ptr(),
            inout("rdx") 0_u64 => _,
            options(nostack),
        );
    }
}

/// As on x86-64.
#[cfg(target_arch = "aarch64")]
fn forget_translations(address: u64, size: usize) {
    let question: [u64; 6] = [DISCARD_TRANSLATIONS, address, size as u64, 0, 0, 0];
    // SAFETY: rotations by 128 in all leave x12 as it was, and x10 or x10 is x10. Under valgrind, x3 is written.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") question.as_ptr(),
            inout("x3") 0_u64 => _,
            options(nostack),
        );
    }
}

#[cfg(not(any(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    target_arch = "aarch64"
)))]
fn forget_translations(_: u64, _: usize) {}

#[cfg(any(all(target_arch = "x86_64", target_pointer_width = "64"), target_arch = "aarch64"))]
const DISCARD_TRANSLATIONS: u64 = 0x1002;

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
