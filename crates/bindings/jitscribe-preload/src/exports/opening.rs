//! Functions that open a file by its path.

use std::ffi::{c_char, c_int};

use libc::mode_t;

use super::kind_of;
use crate::{guest, real, watch};

/// Watches an opened file, if it is a perf map or a jitdump.
///
/// # Safety
/// `path` is that of the call, which succeeded or failed.
#[inline]
unsafe fn opened(fd: c_int, path: *const c_char, flags: c_int) {
    if fd < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
        return;
    }
    // SAFETY: a path that the C library accepted, or refused.
    if let Some(kind) = unsafe { kind_of(path) } {
        guest::isolated(|| watch::opened(fd, kind));
    }
}

macro_rules! opening {
    ($($(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty),*), $path:ident, $flags:expr;)*) => {$(
        exported! {
            $(#[$attribute])*
            unsafe fn $name($($argument: $type),*) -> c_int {
                // SAFETY: guaranteed by the caller. A mode that was not passed is not read.
                let fd = unsafe { real::$name($($argument),*) };
                // SAFETY: the path of the call.
                unsafe { opened(fd, $path, $flags) };
                fd
            }
        }
    )*};
}

opening! {
    // Rust 1.95 cannot define a function with `...`, as C declares this one. On the supported machines (x86-64,
    // arm64), the mode is in the same register either way.
    #[allow(unknown_lints, invalid_runtime_symbol_definitions, reason = "`...` cannot be written")]
    open(path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    open64(path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    creat(path: *const c_char, mode: mode_t), path, libc::O_WRONLY;
    creat64(path: *const c_char, mode: mode_t), path, libc::O_WRONLY;
    __open_2(path: *const c_char, flags: c_int), path, flags;
    __open64_2(path: *const c_char, flags: c_int), path, flags;
    __openat_2(dir: c_int, path: *const c_char, flags: c_int), path, flags;
    __openat64_2(dir: c_int, path: *const c_char, flags: c_int), path, flags;
}
