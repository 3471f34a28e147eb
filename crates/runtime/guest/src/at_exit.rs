//! Work when the process ends.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use fallible::Refused;

unsafe extern "C" {
    /// Of the C++ ABI, in all C libraries: like `atexit`, with an argument.
    fn __cxa_atexit(
        work: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        object: *const c_void,
    ) -> c_int;
    /// The address of this identifies the object that this is linked into.
    static __dso_handle: c_void;
}

/// Runs `work` when the process ends by `exit`, or when the library that this is linked into is unloaded. Among such handlers, the
/// last one that was registered runs first.
///
/// # Errors
/// An allocation failed.
pub fn at_exit<F: Fn() + Send + Sync + 'static>(work: F) -> Result<(), Refused> {
    let work = Box::into_raw(fallible::boxed(work)?);
    // SAFETY: `run` gets what it expects. No other code has the pointer. Of the handle, only the address is taken.
    let failed = unsafe { __cxa_atexit(run::<F>, work.cast(), &raw const __dso_handle) };
    if failed != 0 {
        // SAFETY: it was not registered, so it is still ours.
        drop(unsafe { Box::from_raw(work) });
        return Err(Refused);
    }
    Ok(())
}

extern "C" fn run<F: Fn()>(work: *mut c_void) {
    // SAFETY: `at_exit` registered it with this type, and it is never freed.
    let work = unsafe { &*work.cast::<F>() };
    // A panic must not reach the C library.
    let _ = catch_unwind(AssertUnwindSafe(work));
}
