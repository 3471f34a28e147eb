//! `dlopen`, for objects that are to ask their own libraries first.
//!
//! All others are loaded by the real function as if called from where it is called: it goes by the caller's own search
//! path.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::{deepbind, guest, real};

/// Whether the object at this path is loaded in a way that goes past what was preloaded, and is the same whoever asks for
/// it: with a path, and nothing in it that stands for the caller's folder.
extern "C" fn goes_past(path: *const c_char, flags: c_int) -> bool {
    if path.is_null() || flags & libc::RTLD_DEEPBIND == 0 {
        return false;
    }
    // SAFETY: a string, as the caller of `dlopen` promises.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.contains(&b'/') && !path.contains(&b'$')
}

unsafe extern "C-unwind" fn load(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    let handle = unsafe { real::dlopen(path, flags) };
    if !handle.is_null() {
        // SAFETY: a handle of an object that is loaded, and that nobody but the caller can let go of.
        guest::quietly(|| unsafe { deepbind::lead_here(handle) });
    }
    handle
}

extern "C" fn real_dlopen() -> *mut c_void {
    real::address_of_dlopen()
}

#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn dlopen() {
    // SAFETY: both arguments are where they were, and the stack is, when another function is jumped to; before that they are
    // kept on the stack, which a call wants at a multiple of 16.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {goes_past}",
        "test al, al",
        "jne 2f",
        "call {real}",
        "jmp 3f",
        "2:",
        "lea rax, [rip + {load}]",
        "3:",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        goes_past = sym goes_past,
        real = sym real_dlopen,
        load = sym load,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn dlopen() {
    // SAFETY: as above; the return address is kept as well.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "stp x0, x1, [sp, #16]",
        "bl {goes_past}",
        "tbnz w0, #0, 2f",
        "bl {real}",
        "mov x16, x0",
        "b 3f",
        "2:",
        "adrp x16, {load}",
        "add x16, x16, :lo12:{load}",
        "3:",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "br x16",
        ".cfi_endproc",
        goes_past = sym goes_past,
        real = sym real_dlopen,
        load = sym load,
    )
}
