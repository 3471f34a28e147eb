//! `dlopen`, for objects that look up symbols in their own libraries first.
//!
//! All other objects are loaded by the real function as if it were called directly: it uses the search path of its caller.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::{deepbind, guest, real};

/// Whether the object at this path is loaded past the preloaded libraries, and is the same for every caller: the path
/// contains a slash, and nothing that stands for the caller's directory.
extern "C" fn bypasses_preload(path: *const c_char, flags: c_int) -> bool {
    if path.is_null() || flags & libc::RTLD_DEEPBIND == 0 {
        return false;
    }
    // SAFETY: a string, as the caller of `dlopen` guarantees.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.contains(&b'/') && !path.contains(&b'$')
}

unsafe extern "C-unwind" fn load(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { real::dlopen(path, flags) };
    if !handle.is_null() {
        // SAFETY: a handle of an object that is loaded, and that only the caller can close.
        guest::isolated(|| unsafe { deepbind::patch_got(handle) });
    }
    handle
}

extern "C" fn real_dlopen() -> *mut c_void {
    real::address_of_dlopen()
}

#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: both arguments and the stack are as they were when this jumps to the other function. Before that, the
    // arguments are kept on the stack, which must be at a multiple of 16 for a call.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {bypasses_preload}",
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
        bypasses_preload = sym bypasses_preload,
        real = sym real_dlopen,
        load = sym load,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: as above; the return address is kept, too.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "stp x0, x1, [sp, #16]",
        "bl {bypasses_preload}",
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
        bypasses_preload = sym bypasses_preload,
        real = sym real_dlopen,
        load = sym load,
    )
}
