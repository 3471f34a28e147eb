//! What the JVM calls by name.
#![allow(unsafe_code, reason = "the JVM finds these by their names, and passes pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agent::{self, Come};
use crate::env::{Vm, text};
use crate::jvmti::{self, ERR, OK};
use crate::options::Options;

/// The JVM begins, with the agent on its command line.
///
/// # Safety
/// As the JVM calls it: with its own pointer, and options that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnLoad(
    vm: *mut c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    // Anything else would end the JVM, which is not worth it.
    // SAFETY: as required of the caller.
    let _ = unsafe { come(vm, options, Come::First) };
    OK
}

/// The agent is loaded into a JVM that runs; once more, with other options, each time it is asked for.
///
/// # Safety
/// As of [`Agent_OnLoad`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnAttach(
    vm: *mut c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    // SAFETY: as required of the caller.
    unsafe { come(vm, options, Come::Late) }
}

/// The JVM ends. What was announced stays in the log for whoever has it open.
#[unsafe(no_mangle)]
pub extern "C" fn Agent_OnUnload(_vm: *mut c_void) {}

/// # Safety
/// As of [`Agent_OnLoad`].
unsafe fn come(vm: *mut c_void, options: *const c_char, when: Come) -> c_int {
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as required of the caller; the text is copied.
        let (vm, options) = unsafe { (Vm::new(vm.cast::<jvmti::Vm>()), text(options)) };
        let options = Options::parse(&String::from_utf8_lossy(options));
        vm.is_some_and(|vm| agent::obey(vm, options, when))
    }));
    if done.unwrap_or(false) { OK } else { ERR }
}
