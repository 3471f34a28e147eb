//! The functions of the C API.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use jitscribe::{LoadedCode, Scribe};

use crate::announce::with_code;
use crate::code::Code;
use crate::guard::{guard, guard_value};
use crate::opaque::{Handle, OpaqueScribe};
use crate::outcome::{self, Failure, Outcome};
use crate::raw::{self, Out};
use crate::settings::{self, Settings};

/// The code of a handle, if it is alive. One that was never written is never stale.
fn loaded(scribe: Scribe, handle: Handle) -> Result<LoadedCode, Failure> {
    let code = LoadedCode::from_raw(scribe, handle);
    if code.is_stale() {
        code.keep();
        return Err(Failure::Handle);
    }
    Ok(code)
}

/// Makes a scribe with settings of one's own.
///
/// What cannot be had is off, and said once by the notice callback; it is no error.
///
/// @param settings  NULL: a log in memory. It is read during the call only.
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
            let out = Out::new(scribe)?;
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

/// Makes a scribe that does what the environment asks for; see JITSCRIBE_FLAG_ENVIRONMENT. Without anything there:
/// a log in memory.
///
/// @param scribe  out: the scribe, which lives as long as the process.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_open_from_env(scribe: *mut *const OpaqueScribe) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(scribe) }?;
        out.set(OpaqueScribe::new(Scribe::from_env()));
        Ok(())
    })
}

/// Whether announcements are written down. What takes time to prepare can be left when not. It costs a nanosecond or two.
///
/// @return false for NULL, too.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_is_on(scribe: *const OpaqueScribe) -> bool {
    // SAFETY: the contract of the header.
    guard_value(false, || unsafe { raw::shared(scribe) }.is_ok_and(|it| it.scribe.is_on()))
}

/// Announces code: made, or put in the place of what was there. Call it before the code runs.
///
/// It makes no system call and waits for no other thread in the common case; tables of up to 32
/// lines, 4 files and 8 inlined calls are passed on without an allocation.
///
/// @param scribe  from jitscribe_open or jitscribe_open_from_env.
/// @param code    read during the call only.
/// @param handle  out: by which to say that the code moved or is gone; 0 if nothing was written. NULL: the code
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
    guard(|| {
        // SAFETY: the contract of the header.
        unsafe {
            let scribe = raw::shared(scribe)?.scribe;
            if code.is_null() {
                return Err(Failure::Null);
            }
            let out = if handle.is_null() { None } else { Some(Out::new(handle)?) };
            let raw_handle = if scribe.is_on() {
                let code = raw::versioned(code)?;
                with_code(&code, |code| scribe.load(code).into_raw())?
            } else {
                0
            };
            if let Some(out) = out {
                out.set(raw_handle);
            }
        }
        Ok(())
    })
}

/// Says that a code lies at `bytes` now, with everything else as it was. Call it before it runs there.
///
/// @param handle  in and out: the code. It is another number afterwards.
/// @param bytes   where the code runs now; its bytes are read during the call.
/// @param size    its size in bytes, as it was.
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

/// jitscribe_moved for code of which only the place is told, or that lies elsewhere than it runs.
///
/// @param handle   in and out: the code. It is another number afterwards.
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

/// Says that a code is gone. Call it before its memory is used for something else.
///
/// @param handle  the code. It means nothing afterwards; used once more, it is JITSCRIBE_RESULT_ERROR_HANDLE. 0 does
///                nothing.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_unload(scribe: *const OpaqueScribe, handle: Handle) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let scribe = unsafe { raw::shared(scribe) }?.scribe;
        drop(loaded(scribe, handle)?);
        Ok(())
    })
}

/// Does what was asked for from outside by `jitscribe ctl`, if anything was. Announcements do so too; a runtime that has
/// none to make for a long time may call this now and then. It costs a nanosecond or two if nothing was asked for.
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

/// Shows debuggers all code that is alive, for a signal handler that knows the signal for a crash and has a debugger
/// look, or writes a core file, before it returns. It may be called in any handler, whatever locks are held, and waits for
/// five seconds at most. Other handlers need not: see JITSCRIBE_FLAG_SHOW_ON_CRASH, without which this does nothing.
///
/// @return whether all is shown.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_show_before_crash(scribe: *const OpaqueScribe) -> bool {
    guard_value(false, || {
        // SAFETY: the contract of the header.
        unsafe { raw::shared(scribe) }.is_ok_and(|it| it.scribe.show_before_crash())
    })
}

/// The descriptor of the log's file: in memory, or the dump. It belongs to the library: do not close it.
///
/// @param fd  out: the descriptor; -1 if there is none.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_log_fd(scribe: *const OpaqueScribe, fd: *mut c_int) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (scribe, out) = unsafe { (raw::shared(scribe)?.scribe, Out::new(fd)?) };
        #[cfg(unix)]
        let fd = scribe.log_fd().map_or(-1, |fd| std::os::fd::AsRawFd::as_raw_fd(&fd));
        // There it is memory of the process alone.
        #[cfg(windows)]
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
/// @param room    where to write it with a NUL behind it, if it fits; untouched if not. NULL if `size` is 0.
/// @param size    how many bytes there are, with the one for the NUL.
/// @param length  out: how many bytes it has, without the NUL; 0 if there is no dump.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_dump_path(
    scribe: *const OpaqueScribe,
    room: *mut c_char,
    size: usize,
    length: *mut usize,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (scribe, room, out) = unsafe {
            (raw::shared(scribe)?.scribe, raw::room(room.cast::<u8>(), size)?, Out::new(length)?)
        };
        let path = scribe.dump_path().unwrap_or_default();
        let path = path.as_os_str().as_encoded_bytes();
        if let Some((text, [end, ..])) = room.split_at_mut_checked(path.len()) {
            text.write_copy_of_slice(path);
            end.write(0);
        }
        out.set(path.len());
        Ok(())
    })
}

/// The version of the library that runs: "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn jitscribe_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The name of a result, as it is spelt here. It need not be freed.
///
/// @param result  any number.
#[unsafe(no_mangle)]
pub extern "C" fn jitscribe_result_name(result: i32) -> *const c_char {
    outcome::name(result).as_ptr()
}
