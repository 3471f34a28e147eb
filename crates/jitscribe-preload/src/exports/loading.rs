//! `dlopen`, where a library is to find the C library's functions before ours.
//!
//! PHP loads its extensions so (`RTLD_DEEPBIND`), and what opcache writes would not be seen. The flag is taken away. Which
//! library calls, and so where is searched, the real function knows from where it returns to: it is jumped to.

use std::ffi::c_void;

use crate::real;

/// Where the real function is.
extern "C" fn place() -> *mut c_void {
    real::dlopen_place()
}

#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn dlopen() {
    // SAFETY: both arguments are kept over the call, before which the stack is at a multiple of 16; then all is as it was
    // when this was called, but for `RTLD_DEEPBIND`, 8, in the second.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {place}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "and esi, -9",
        "jmp rax",
        ".cfi_endproc",
        place = sym place,
    )
}
