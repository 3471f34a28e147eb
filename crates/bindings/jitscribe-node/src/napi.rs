//! The functions for JavaScript, by node's interface for addons, which is the same in all versions.
#![allow(unsafe_code, reason = "the interface of C")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::path::Path;
use std::ptr::{null_mut, without_provenance_mut};

use crate::agent::{self, AtEnd};
use crate::symbols::find;
use crate::v8::Isolate;

/// The environment of an addon in one isolate.
type Env = *mut c_void;
/// A value of JavaScript.
type Value = *mut c_void;
/// `napi_status`: 0 if the call succeeded.
type Status = c_int;
type Callback = unsafe extern "C" fn(Env, *mut c_void) -> Value;
type Hook = unsafe extern "C" fn(*mut c_void);

/// The longest path of a pipe.
const LONGEST_PATH: usize = 4096;

/// Declares functions that node exports. They fail if it does not.
macro_rules! imported {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As node documents it.
        unsafe fn $name($($argument: $type),*) -> bool {
            type Function = unsafe extern "C" fn($($type),*) -> Status;
            let name = concat!(stringify!($name), "\0").as_bytes();
            let Some(found) = CStr::from_bytes_with_nul(name).ok().and_then(find) else { return false };
            // SAFETY: node exports it with this type.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(found.as_ptr()) };
            // SAFETY: as required.
            unsafe { function($($argument),*) == 0 }
        }
    )*};
}

imported! {
    /// Makes a function of JavaScript.
    fn napi_create_function(env: Env, name: *const c_char, length: usize, callback: Callback, data: *mut c_void, result: *mut Value);
    /// Sets a property of an object.
    fn napi_set_named_property(env: Env, object: Value, name: *const c_char, value: Value);
    /// The arguments of a call.
    fn napi_get_cb_info(env: Env, info: *mut c_void, count: *mut usize, arguments: *mut Value, this: *mut Value, data: *mut *mut c_void);
    /// The text of a string, as far as there is room.
    fn napi_get_value_string_utf8(env: Env, value: Value, room: *mut c_char, size: usize, length: *mut usize);
    /// Makes a string.
    fn napi_create_string_utf8(env: Env, text: *const c_char, length: usize, result: *mut Value);
    /// Makes true or false.
    fn napi_get_boolean(env: Env, value: bool, result: *mut Value);
    /// Has a function called before the isolate ends.
    fn napi_add_env_cleanup_hook(env: Env, hook: Hook, argument: *mut c_void);
}

/// What node calls when the addon is loaded, once in each thread that does so.
///
/// # Safety
/// Only node calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: Env, exports: Value) -> Value {
    let functions: [(&CStr, Callback); 3] = [(c"start", start), (c"join", join), (c"isOn", is_on)];
    for (name, callback) in functions {
        let mut function = null_mut();
        // SAFETY: the environment that node passed, C strings, and functions that are never unloaded.
        unsafe {
            let length = name.count_bytes();
            if napi_create_function(
                env,
                name.as_ptr(),
                length,
                callback,
                null_mut(),
                &raw mut function,
            ) {
                napi_set_named_property(env, exports, name.as_ptr(), function);
            }
        }
    }
    exports
}

/// `start(PIPE)`.
unsafe extern "C" fn start(env: Env, info: *mut c_void) -> Value {
    let mut path = [0; LONGEST_PATH];
    // SAFETY: node passed these.
    let length = unsafe { first_argument(env, info, &mut path) };
    let path = Path::new(OsStr::from_bytes(path.get(..length).unwrap_or_default()));
    // SAFETY: as above.
    unsafe { answer(env, |at_end| agent::start(path, at_end)) }
}

/// `join()`.
unsafe extern "C" fn join(env: Env, _: *mut c_void) -> Value {
    // SAFETY: node passed it.
    unsafe { answer(env, |at_end| agent::join(at_end)) }
}

/// `isOn()`.
unsafe extern "C" fn is_on(env: Env, _: *mut c_void) -> Value {
    let mut value = null_mut();
    // SAFETY: node passed the environment. Without a value, the function returns undefined.
    unsafe { napi_get_boolean(env, agent::is_on(), &raw mut value) };
    value
}

/// Reads the first argument, if it is a string. Returns its length.
///
/// # Safety
/// Node passed `env` and `info`.
unsafe fn first_argument(env: Env, info: *mut c_void, room: &mut [u8]) -> usize {
    let (mut count, mut argument, mut length) = (1, null_mut(), 0);
    // SAFETY: there is room for one argument, and for the bytes and a NUL.
    let is_read = unsafe {
        napi_get_cb_info(env, info, &raw mut count, &raw mut argument, null_mut(), null_mut())
            && count > 0
            && napi_get_value_string_utf8(
                env,
                argument,
                room.as_mut_ptr().cast(),
                room.len(),
                &raw mut length,
            )
    };
    if is_read { length } else { 0 }
}

/// Starts. Returns undefined, or a string that says why it does not announce code.
///
/// # Safety
/// Node passed `env`.
unsafe fn answer(
    env: Env,
    start: impl FnOnce(AtEnd<'_>) -> Result<(), &'static str> + std::panic::UnwindSafe,
) -> Value {
    let at_end = |isolate: Isolate| {
        let argument = without_provenance_mut(isolate.address());
        // SAFETY: the environment of this isolate; the hook is never unloaded, and its argument is only a number.
        unsafe { napi_add_env_cleanup_hook(env, forget, argument) }
    };
    let started = catch_unwind(|| start(&at_end)).unwrap_or(Err("it failed"));
    let Err(text) = started else { return null_mut() };
    let mut value = null_mut();
    // SAFETY: a string, with its length.
    unsafe { napi_create_string_utf8(env, text.as_ptr().cast(), text.len(), &raw mut value) };
    value
}

/// The isolate of an environment is about to end.
unsafe extern "C" fn forget(isolate: *mut c_void) {
    let _ = catch_unwind(|| agent::forget(isolate.addr()));
}
