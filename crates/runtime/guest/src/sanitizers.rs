//! MemorySanitizer and ThreadSanitizer of a host that is compiled with them (`-fsanitize=memory`, `-fsanitize=thread`).
//!
//! They follow what code that they compiled does to memory, and this library is not among that. So what it writes stays unwritten to the
//! first, which then reports the host that reads it; and the second does not see the atomic instructions by which its threads agree. But
//! both see its calls of `memcmp`, `memcpy` and `write`. The functions here tell them what to ignore. Without a sanitizer, each is one to
//! three loads and branches.
#![allow(unsafe_code)]

use std::marker::PhantomData;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod interface {
    use std::ffi::{c_char, c_int, c_void};
    use std::mem::transmute;

    /// Calls a function of a sanitizer, if it is there.
    macro_rules! call {
        ($name:literal, fn($($kind:ty),*), $($argument:expr),*) => {{
            let function = crate::weak_symbol!($name);
            if !function.is_null() {
                // SAFETY: the function of this name has these arguments, and keeps none (`sanitizer/msan_interface.h`; of
                // ThreadSanitizer, `tsan_interface_ann.cpp`).
                unsafe {
                    transmute::<*mut c_void, unsafe extern "C" fn($($kind),*)>(function)($($argument),*)
                }
            }
        }};
    }

    /// The annotations of ThreadSanitizer take a file and a line.
    macro_rules! annotate {
        ($name:literal) => {
            call!($name, fn(*const c_char, c_int), c"jitscribe".as_ptr(), 0)
        };
    }

    #[inline]
    pub(super) fn stop_checking() {
        call!("__msan_scoped_disable_interceptor_checks", fn(),);
        annotate!("AnnotateIgnoreReadsBegin");
        annotate!("AnnotateIgnoreWritesBegin");
    }

    #[inline]
    pub(super) fn check_again() {
        annotate!("AnnotateIgnoreWritesEnd");
        annotate!("AnnotateIgnoreReadsEnd");
        call!("__msan_scoped_enable_interceptor_checks", fn(),);
    }

    #[inline]
    pub(super) fn unpoison(at: *const u8, size: usize) {
        call!("__msan_unpoison", fn(*const c_void, usize), at.cast(), size);
    }

    #[inline]
    pub(super) fn unpoison_arguments(count: usize) {
        call!("__msan_unpoison_param", fn(usize), count);
    }
}

/// The sanitizer is not supported there.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod interface {
    pub(super) fn stop_checking() {}
    pub(super) fn check_again() {}
    pub(super) fn unpoison(_: *const u8, _: usize) {}
    pub(super) fn unpoison_arguments(_: usize) {}
}

/// While this value exists, the C library's functions that this thread calls check no memory.
#[derive(Debug)]
#[must_use = "memory is checked again when it is dropped"]
pub struct Unchecked(PhantomData<*const ()>);

/// Begins work of the library, as long as the result lives.
#[inline]
pub fn unchecked() -> Unchecked {
    interface::stop_checking();
    Unchecked(PhantomData)
}

impl Drop for Unchecked {
    #[inline]
    fn drop(&mut self) {
        interface::check_again();
    }
}

/// Calls a function of the host, with up to eight arguments, in the midst of [`unchecked`] work.
#[inline]
pub fn call_host<R>(call: impl FnOnce() -> R) -> R {
    interface::check_again();
    interface::unpoison_arguments(8);
    let result = call();
    interface::stop_checking();
    result
}

/// The library has written to this memory, which the host may read.
#[inline]
pub fn written(at: *const u8, size: usize) {
    interface::unpoison(at, size);
}
