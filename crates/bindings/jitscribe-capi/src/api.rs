//! The functions of the C API.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use jitscribe::{CodeContext, LoadedCode, Scribe, binding};

use crate::announce::with_code;
use crate::code::Code;
use crate::guard::{guard, guard_value};
use crate::opaque::{Handle, OpaqueScribe};
use crate::outcome::{self, Failure, Outcome};
use crate::raw::{self, Out};
use crate::settings::{self, Settings};

/// The code of a handle, if it is alive. A handle of an announcement that was not written is never stale.
fn loaded(scribe: Scribe, handle: Handle) -> Result<LoadedCode, Failure> {
    let code = LoadedCode::from_raw(scribe, handle);
    if code.is_stale() {
        code.leak();
        return Err(Failure::Handle);
    }
    Ok(code)
}

/// Creates a scribe with the given settings.
///
/// A feature that is not available is turned off, and the notice callback reports it once. This is not an error.
///
/// @param settings  NULL: a log in memory. Read during the call only.
/// @param scribe    out: the scribe, which lives as long as the process.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_open(
    settings: *const Settings,
    scribe: *mut *const OpaqueScribe,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        unsafe {
            let out = Out::new(scribe, ptr::null())?;
            let opened = if settings.is_null() {
                settings::open(None)
            } else {
                let settings = raw::versioned(settings)?;
                settings::open(Some(&settings))
            }?;
            out.set(opened);
        }
        Ok(())
    })
}

/// The scribe that is configured by the environment; see JITSCRIBE_FLAG_ENVIRONMENT. Without any such setting, it writes a
/// log in memory. The first call creates it; later calls in the process return the same pointer.
///
/// @return the scribe, which lives as long as the process. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn jitscribe_global() -> *const OpaqueScribe {
    std::ptr::from_ref(guard_value(OpaqueScribe::off(), OpaqueScribe::global))
}

/// Whether announcements are written. If not, a runtime can skip preparing them. The call costs a nanosecond or two.
///
/// @return false for NULL, too.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_is_on(scribe: *const OpaqueScribe) -> bool {
    // SAFETY: the contract of the header.
    let Ok(opened) = (unsafe { raw::shared(scribe) }) else { return false };
    match opened.scribe.is_on_at_a_glance() {
        Some(is_on) => is_on,
        None => guard_value(false, || opened.scribe.is_on()),
    }
}

/// Announces a code load: new code, or code that replaces what was at its address. Call it before the code runs.
///
/// In the common case it makes no system call and waits for no other thread. Tables of up to 32 lines, 4 files and 8
/// inlined calls are passed on without an allocation.
///
/// @param scribe  from jitscribe_open or jitscribe_global.
/// @param code    read during the call only.
/// @param handle  out: the handle for announcing a move or an unload of the code; 0 if nothing was written. NULL: the code
///                lives as long as the process.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_load(
    scribe: *const OpaqueScribe,
    code: *const Code,
    handle: *mut Handle,
) -> Outcome {
    // SAFETY: the contract of the header.
    unsafe {
        if is_done_while_off(scribe, code, handle) {
            return Outcome::Ok;
        }
        load(scribe, code, handle)
    }
}

/// [`jitscribe_load`] in full. Not inlined, so that a call while the scribe is off saves no registers.
///
/// # Safety
/// The contract of the header.
#[inline(never)]
unsafe fn load(scribe: *const OpaqueScribe, code: *const Code, handle: *mut Handle) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        unsafe {
            let out = if handle.is_null() { None } else { Some(Out::new(handle, 0)?) };
            let scribe = raw::shared(scribe)?.scribe;
            if code.is_null() {
                return Err(Failure::Null);
            }
            let raw_handle = if scribe.is_on() { announced(scribe, code)? } else { 0 };
            if let Some(out) = out {
                out.set(raw_handle);
            }
        }
        Ok(())
    })
}

/// The whole of [`jitscribe_load`] for a scribe that is off and valid arguments. Outside of the guard, which takes longer than
/// all of this: there is nothing here that can panic, or that a sanitizer intercepts.
///
/// # Safety
/// The contract of the header.
#[inline]
unsafe fn is_done_while_off(
    scribe: *const OpaqueScribe,
    code: *const Code,
    handle: *mut Handle,
) -> bool {
    // SAFETY: guaranteed by the caller.
    let is_off = unsafe { raw::shared(scribe) }
        .is_ok_and(|opened| opened.scribe.is_on_at_a_glance() == Some(false));
    if !is_off || code.is_null() {
        return false;
    }
    // SAFETY: guaranteed by the caller. Making it writes the handle of nothing.
    handle.is_null() || unsafe { Out::new(handle, 0) }.is_ok()
}

/// Announces it, and returns its handle: a function of its own, so that a scribe that is off pays nothing for the tables on its stack.
///
/// # Safety
/// The contract of the header.
#[inline(never)]
unsafe fn announced(scribe: Scribe, code: *const Code) -> Result<Handle, Failure> {
    // SAFETY: guaranteed by the caller.
    let announced = unsafe {
        let code = raw::versioned(code)?;
        with_code(&code, |code| scribe.load(code).into_raw()).map(|(handle, are_files_missing)| {
            if are_files_missing {
                binding::files_are_missing(&scribe, code.name.bytes().unwrap_or_default());
            }
            handle
        })
    };
    match announced {
        Err(Failure::Memory) => {
            binding::left_out(&scribe);
            Ok(0)
        }
        announced => announced,
    }
}

/// Announces that code has moved to `bytes`; everything else about it is unchanged. Call it before the code runs there.
///
/// @param handle  in and out: the code's handle. The call changes its value.
/// @param bytes   where the code runs now; its bytes are read during the call.
/// @param size    its size in bytes, the same as before.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_moved(
    scribe: *const OpaqueScribe,
    handle: *mut Handle,
    bytes: *const c_void,
    size: usize,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (scribe, handle, bytes) = unsafe {
            let scribe = raw::shared(scribe)?.scribe;
            let handle = raw::in_out(handle)?;
            if bytes.is_null() {
                return Err(Failure::Null);
            }
            (scribe, handle, raw::slice(bytes.cast::<u8>(), size)?)
        };
        let mut code = loaded(scribe, *handle)?;
        code.moved_to(bytes);
        *handle = code.into_raw();
        Ok(())
    })
}

/// jitscribe_moved for code that was announced without bytes, or whose bytes are not where it runs.
///
/// @param handle   in and out: the code's handle. The call changes its value.
/// @param address  where the code runs now.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_moved_to_address(
    scribe: *const OpaqueScribe,
    handle: *mut Handle,
    address: u64,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (scribe, handle) = unsafe { (raw::shared(scribe)?.scribe, raw::in_out(handle)?) };
        let mut code = loaded(scribe, *handle)?;
        code.moved_to_address(address);
        *handle = code.into_raw();
        Ok(())
    })
}

/// Announces a code unload. Call it before the code's memory is used for something else.
///
/// @param handle  the code's handle, which is invalid afterwards: using it again gives JITSCRIBE_RESULT_ERROR_HANDLE. 0 does
///                nothing.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_unload(scribe: *const OpaqueScribe, handle: Handle) -> Outcome {
    // Of an announcement that was not written: there is nothing to guard.
    if handle == 0 && !scribe.is_null() {
        return Outcome::Ok;
    }
    // SAFETY: the contract of the header.
    unsafe { unload(scribe, handle) }
}

/// [`jitscribe_unload`] in full.
///
/// # Safety
/// The contract of the header.
#[inline(never)]
unsafe fn unload(scribe: *const OpaqueScribe, handle: Handle) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let scribe = unsafe { raw::shared(scribe) }?.scribe;
        let is_gone = LoadedCode::from_raw(scribe, handle).unload();
        is_gone.then_some(()).ok_or(Failure::Handle)
    })
}

/// Applies a pending request of `jitscribe ctl`, if there is one. Announcements do so too; a runtime that announces
/// nothing for a long time may call this now and then. Without a pending request it costs a nanosecond or two.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_poll(scribe: *const OpaqueScribe) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        unsafe { raw::shared(scribe) }?.scribe.poll();
        Ok(())
    })
}

/// The file descriptor of the log, which is a file in memory or the dump. It belongs to the library: do not close it.
///
/// @param fd  out: the descriptor. -1 if there is none, or if the process has closed it, as the number may be another file's.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_log_fd(scribe: *const OpaqueScribe, fd: *mut c_int) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (out, scribe) = unsafe { (Out::new(fd, -1)?, raw::shared(scribe)?.scribe) };
        #[cfg(target_os = "linux")]
        let fd = scribe.log_fd().map_or(-1, |fd| std::os::fd::AsRawFd::as_raw_fd(&fd));
        // On macOS and Windows, the log is private memory of the process; a dump of macOS has a path.
        #[cfg(not(target_os = "linux"))]
        let fd = {
            let _: Scribe = scribe;
            -1
        };
        out.set(fd);
        Ok(())
    })
}

/// The path of the dump that is being written, if the log is a file.
///
/// @param buffer  the buffer for the path and a NUL; not written to if they do not fit. NULL if `size` is 0.
/// @param size    the size of the buffer in bytes, including the NUL.
/// @param length  out: the length of the path in bytes, without the NUL; 0 if there is no dump.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_dump_path(
    scribe: *const OpaqueScribe,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (out, scribe, buffer) = unsafe {
            (
                Out::new(length, 0)?,
                raw::shared(scribe)?.scribe,
                raw::buffer(buffer.cast::<u8>(), size)?,
            )
        };
        let path = scribe.dump_path().unwrap_or_default();
        let path = path.as_os_str().as_encoded_bytes();
        if let Some((text, [end, ..])) = buffer.split_at_mut_checked(path.len()) {
            raw::copy(text, path);
            end.write(0);
        }
        out.set(path.len());
        Ok(())
    })
}

/// Where the code logs of this process are, for a program that publishes OpenTelemetry's process context (OTEP 4719) itself: entries
/// of the field `attributes` of the protobuf message ProcessContext. Append them to the encoded message, and update the context
/// when another scribe was made, and in the child of a fork when it has announced a code.
///
/// @param buffer  the buffer for the entries; not written to if they do not fit. NULL if `size` is 0.
/// @param size    the size of the buffer in bytes. 1024 are always enough.
/// @param length  out: the length of the entries in bytes; 0 if there is no log.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_code_context(
    buffer: *mut c_void,
    size: usize,
    length: *mut usize,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (out, buffer) =
            unsafe { (Out::new(length, 0)?, raw::buffer(buffer.cast::<u8>(), size)?) };
        let mut entries = [0; CodeContext::MOST_BYTES];
        let size = CodeContext::of_process().encode_attributes(&mut entries).unwrap_or(0);
        let entries = entries.get(..size).unwrap_or_default();
        if let Some(place) = buffer.get_mut(..size) {
            raw::copy(place, entries);
        }
        out.set(size);
        Ok(())
    })
}

/// The version of the library that is loaded: "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn jitscribe_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The name of a result, as in this header. It need not be freed.
///
/// @param result  any number.
#[unsafe(no_mangle)]
pub extern "C" fn jitscribe_result_name(result: i32) -> *const c_char {
    outcome::name(result).as_ptr()
}
