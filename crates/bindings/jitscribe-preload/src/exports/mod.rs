//! The interposed functions of the C library: each calls the real function, and informs [`crate::watch`] about watched
//! files.
//!
//! # Cancellation
//! Many of these functions are cancellation points: glibc ends a cancelled thread by a forced unwind, which starts inside
//! the real function and passes through ours. Therefore the bodies have the ABI `C-unwind`, and nothing to clean up around
//! that call. The compiler requires the exported symbols themselves to be `extern "C"`
//! (`invalid_runtime_symbol_definitions`, since Rust 1.98), and `extern "C"` functions abort when something unwinds out of
//! them. So each exported symbol is one jump to its body ([`exported`]): it leaves no frame on the stack that an unwind
//! could meet.
//!
//! # Safety
//! As for the C function of the same name.

/// The instruction that jumps to another function with the same arguments and the same return address.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to_body {
    () => {
        "jmp {body}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to_body {
    () => {
        "b {body}"
    };
}

/// Exports functions under the names of the C library: each is a jump to a body with the ABI that may unwind.
macro_rules! exported {
    ($(
        $(#[$attribute:meta])*
        unsafe fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $returned:ty)? $body:block
    )*) => {$(
        const _: () = {
            unsafe extern "C-unwind" fn body($($argument: $type),*) $(-> $returned)? $body

            $(#[$attribute])*
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name($($argument: $type),*) $(-> $returned)? {
                // SAFETY: the body takes the same arguments from the same places, and returns to the caller. There is no
                // frame that would have to be described.
                std::arch::naked_asm!(
                    ".cfi_startproc",
                    jump_to_body!(),
                    ".cfi_endproc",
                    body = sym body,
                )
            }
        };
    )*};
}

mod descriptors;
mod formats;
mod loading;
mod mappings;
mod opening;
mod streams;
mod writing;

use std::ffi::{CStr, c_char};

use crate::names::{self, Kind};

/// The kind of the file at this path.
///
/// # Safety
/// It is null or a NUL-terminated string.
unsafe fn kind_of(path: *const c_char) -> Option<Kind> {
    if path.is_null() {
        return None;
    }
    // SAFETY: a string, as the caller guarantees.
    names::kind(unsafe { CStr::from_ptr(path) }.to_bytes())
}
