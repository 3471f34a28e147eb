//! The functions that the JVM finds by name.
#![allow(unsafe_code, reason = "the JVM finds these by their names, and passes pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agent::{self, Attach};
use crate::env::{Vm, text};
use crate::events::CALLBACKS;
use crate::jvmti::{self, ERR, OK};
use crate::options::Options;

/// Called at startup of a JVM with the agent on its command line.
///
/// # Safety
/// As the JVM calls it: with its own pointer, and NUL-terminated options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnLoad(
    vm: *mut c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    // Any other result would end the JVM, and a missing agent is not worth that.
    // SAFETY: as required of the caller.
    let _ = unsafe { attach(vm, options, Attach::OnLoad) };
    OK
}

/// Called when the agent is loaded into a running JVM, and again, with other options, for each further
/// request.
///
/// # Safety
/// As for [`Agent_OnLoad`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnAttach(
    vm: *mut c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    // SAFETY: as required of the caller.
    unsafe { attach(vm, options, Attach::OnAttach) }
}

/// Called when the JVM ends. What was announced stays in the log for readers that have it open.
#[unsafe(no_mangle)]
pub extern "C" fn Agent_OnUnload(_vm: *mut c_void) {}

/// # Safety
/// As for [`Agent_OnLoad`].
unsafe fn attach(vm: *mut c_void, options: *const c_char, when: Attach) -> c_int {
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as required of the caller; the text is copied.
        let (vm, options) = unsafe { (Vm::new(vm.cast::<jvmti::Vm>()), text(options)) };
        let options = Options::parse(&String::from_utf8_lossy(options));
        vm.is_some_and(|vm| agent::run_command(vm, options, when, &CALLBACKS))
    }));
    if done.unwrap_or(false) { OK } else { ERR }
}
