//! `dprintf` and its variants, which the C library writes with an internal function.
//!
//! Rust cannot define functions with a variable number of arguments. So a few instructions build a list (`va_list`) of them,
//! as a C compiler does.

use std::ffi::{c_char, c_int, c_void};

use super::writing::{after_write, before_write};
use crate::{real, span};

/// The body of `vdprintf` and `dprintf`.
///
/// # Safety
/// As for the C function.
unsafe extern "C-unwind" fn list(
    fd: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if !span::holds(fd) {
        // SAFETY: guaranteed by the caller.
        return unsafe { real::vdprintf(fd, format, arguments) };
    }
    before_write(fd);
    // SAFETY: guaranteed by the caller.
    let done = unsafe { real::vdprintf(fd, format, arguments) };
    after_write(fd);
    done
}

/// The body of `__vdprintf_chk` and `__dprintf_chk`.
///
/// # Safety
/// As for the C function.
unsafe extern "C-unwind" fn checked_list(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if !span::holds(fd) {
        // SAFETY: guaranteed by the caller.
        return unsafe { real::__vdprintf_chk(fd, flag, format, arguments) };
    }
    before_write(fd);
    // SAFETY: guaranteed by the caller.
    let done = unsafe { real::__vdprintf_chk(fd, flag, format, arguments) };
    after_write(fd);
    done
}

exported! {
    unsafe fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
        // SAFETY: guaranteed by the caller.
        unsafe { list(fd, format, arguments) }
    }

    unsafe fn __vdprintf_chk(
        fd: c_int,
        flag: c_int,
        format: *const c_char,
        arguments: *mut c_void,
    ) -> c_int {
        // SAFETY: guaranteed by the caller.
        unsafe { checked_list(fd, flag, format, arguments) }
    }
}

/// A function that builds a list of its variable arguments, and calls another function with it.
#[cfg(target_arch = "x86_64")]
macro_rules! with_list {
    ($name:ident, $named_bytes:literal, $list_in:literal, $callee:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            // SAFETY: System V ABI, "The Register Save Area" and "The va_list Type": the list is at rsp, the registers above
            // it from 0x20 on, vector registers at a multiple of 16 (a call leaves rsp 8 below one), and the arguments on
            // the stack above the return address. The result is that of the callee.
            std::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 0xd8",
                ".cfi_adjust_cfa_offset 0xd8",
                "mov [rsp + 0x20], rdi",
                "mov [rsp + 0x28], rsi",
                "mov [rsp + 0x30], rdx",
                "mov [rsp + 0x38], rcx",
                "mov [rsp + 0x40], r8",
                "mov [rsp + 0x48], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 0x50], xmm0",
                "movaps [rsp + 0x60], xmm1",
                "movaps [rsp + 0x70], xmm2",
                "movaps [rsp + 0x80], xmm3",
                "movaps [rsp + 0x90], xmm4",
                "movaps [rsp + 0xa0], xmm5",
                "movaps [rsp + 0xb0], xmm6",
                "movaps [rsp + 0xc0], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $named_bytes),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 0xe0]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 0x20]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list_in, ", rsp"),
                "call {callee}",
                "add rsp, 0xd8",
                ".cfi_adjust_cfa_offset -0xd8",
                "ret",
                ".cfi_endproc",
                callee = sym $callee,
            )
        }
    };
}

/// As above.
#[cfg(target_arch = "aarch64")]
macro_rules! with_list {
    ($name:ident, $unnamed_bytes:literal, $list_in:literal, $callee:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            // SAFETY: Procedure Call Standard for the Arm 64-bit Architecture, "Appendix: Variable argument lists": the list
            // is at sp + 16, the registers above it from 48 on, vector registers from 112 on, and the arguments on the stack
            // above all.
            std::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-256]!",
                ".cfi_def_cfa_offset 256",
                ".cfi_offset x29, -256",
                ".cfi_offset x30, -248",
                "stp x0, x1, [sp, #48]",
                "stp x2, x3, [sp, #64]",
                "stp x4, x5, [sp, #80]",
                "stp x6, x7, [sp, #96]",
                "stp q0, q1, [sp, #112]",
                "stp q2, q3, [sp, #144]",
                "stp q4, q5, [sp, #176]",
                "stp q6, q7, [sp, #208]",
                "add x9, sp, #256",
                "str x9, [sp, #16]",
                "add x9, sp, #112",
                "str x9, [sp, #24]",
                "add x9, sp, #240",
                "str x9, [sp, #32]",
                concat!("mov w9, #-", $unnamed_bytes),
                "str w9, [sp, #40]",
                "mov w9, #-128",
                "str w9, [sp, #44]",
                concat!("add ", $list_in, ", sp, #16"),
                "bl {callee}",
                "ldp x29, x30, [sp], #256",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "ret",
                ".cfi_endproc",
                callee = sym $callee,
            )
        }
    };
}

#[cfg(target_arch = "x86_64")]
with_list!(dprintf, "16", "rdx", list);
#[cfg(target_arch = "x86_64")]
with_list!(__dprintf_chk, "24", "rcx", checked_list);
#[cfg(target_arch = "aarch64")]
with_list!(dprintf, "48", "x2", list);
#[cfg(target_arch = "aarch64")]
with_list!(__dprintf_chk, "40", "x3", checked_list);
