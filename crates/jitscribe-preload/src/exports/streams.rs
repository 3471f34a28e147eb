//! Functions that open and close streams, and say what is behind them.

use std::ffi::{CStr, c_char, c_int};

use libc::{FILE, size_t};

use super::kind_of;
use crate::names::Kind;
use crate::{guest, real, span, streams, watch};

/// Whether a stream of this mode can be written.
///
/// # Safety
/// It is null or a string.
unsafe fn writes(mode: *const c_char) -> bool {
    // SAFETY: a string, as the caller promises.
    !mode.is_null()
        && unsafe { CStr::from_ptr(mode) }.to_bytes().iter().any(|byte| b"wa+".contains(byte))
}

/// The kind of a file that is to be watched.
///
/// # Safety
/// Both are null or strings.
unsafe fn wanted(path: *const c_char, mode: *const c_char) -> Option<Kind> {
    // SAFETY: as the caller promises.
    unsafe { kind_of(path).filter(|_| writes(mode)) }
}

/// Watches the file of a new stream, and gives the stream that the program is to have.
///
/// # Safety
/// The stream is new, or null, and `mode` a string.
unsafe fn opened(stream: *mut FILE, mode: *const c_char, kind: Option<Kind>) -> *mut FILE {
    let Some(kind) = kind.filter(|_| !stream.is_null()) else { return stream };
    // SAFETY: a stream.
    let fd = unsafe { real::fileno(stream) };
    guest::quietly(|| watch::opened(fd, kind));
    if watch::kind_of(fd).is_none() {
        return stream;
    }
    // SAFETY: a new stream, of whose mode the C library had the string.
    unsafe { streams::wrap(stream, fd, mode, kind) }
}

macro_rules! opening {
    ($($open:ident, $open_again:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $open(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: the caller's promise.
            let kind = unsafe { wanted(path, mode) };
            // SAFETY: the caller's promise.
            let stream = unsafe { real::$open(path, mode) };
            // SAFETY: the stream is new.
            unsafe { opened(stream, mode, kind) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $open_again(
            path: *const c_char,
            mode: *const c_char,
            stream: *mut FILE,
        ) -> *mut FILE {
            // SAFETY: the caller's promise.
            let kind = unsafe { wanted(path, mode) };
            let Some(before) = streams::fd_of(stream) else {
                // SAFETY: the caller's promise.
                let stream = unsafe { real::$open_again(path, mode, stream) };
                if let Some(kind) = kind.filter(|_| !stream.is_null()) {
                    // What it writes, no function here sees.
                    // SAFETY: a stream.
                    let fd = unsafe { real::fileno(stream) };
                    guest::quietly(|| {
                        watch::opened(fd, kind);
                        watch::mapped(fd);
                    });
                }
                return stream;
            };
            if path.is_null() {
                return stream;
            }
            // SAFETY: a stream of the caller's.
            unsafe { libc::fflush(stream) };
            // SAFETY: the caller's promise.
            let inner = unsafe { real::$open(path, mode) };
            if inner.is_null() {
                // SAFETY: a stream of the caller's, which is closed where it cannot be opened again.
                unsafe { real::fclose(stream) };
                return inner;
            }
            // SAFETY: a stream.
            let fd = unsafe { real::fileno(inner) };
            if let Some(inner) = streams::exchange(stream, inner, fd) {
                guest::quietly(|| watch::closed(before));
                // SAFETY: nobody else has it.
                unsafe { real::fclose(inner) };
            }
            if let Some(kind) = kind {
                guest::quietly(|| watch::opened(fd, kind));
            }
            stream
        }
    )*};
}

opening! {
    fopen, freopen;
    fopen64, freopen64;
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller's promise.
    let stream = unsafe { real::fdopen(fd, mode) };
    if stream.is_null() || !span::holds(fd) {
        return stream;
    }
    match watch::kind_of(fd) {
        // SAFETY: the mode is the caller's, the stream is new.
        Some(kind) if unsafe { writes(mode) } => unsafe { streams::wrap(stream, fd, mode, kind) },
        _ => stream,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fclose(stream: *mut FILE) -> c_int {
    // One that is watched and was not made here.
    if !stream.is_null() && !span::is_empty() && streams::fd_of(stream).is_none() {
        // SAFETY: a stream of the caller's. It may be none of a descriptor.
        let fd = guest::with_errno_kept(|| unsafe { real::fileno(stream) });
        if fd >= 0 && span::holds(fd) && watch::kind_of(fd).is_some() {
            // SAFETY: as above.
            unsafe { libc::fflush(stream) };
            guest::quietly(|| watch::closed(fd));
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real::fclose(stream) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fileno(stream: *mut FILE) -> c_int {
    match streams::fd_of(stream) {
        Some(fd) => fd,
        // SAFETY: the caller's promise.
        None => unsafe { real::fileno(stream) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    match streams::fd_of(stream) {
        Some(fd) => fd,
        // SAFETY: the caller's promise.
        None => unsafe { real::fileno_unlocked(stream) },
    }
}

/// Streams that were made here keep the buffer that they have.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setvbuf(
    stream: *mut FILE,
    buffer: *mut c_char,
    mode: c_int,
    size: size_t,
) -> c_int {
    match streams::fd_of(stream) {
        Some(_) => 0,
        // SAFETY: the caller's promise.
        None => unsafe { real::setvbuf(stream, buffer, mode, size) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setbuf(stream: *mut FILE, buffer: *mut c_char) {
    if streams::fd_of(stream).is_none() {
        // SAFETY: the caller's promise.
        unsafe { real::setbuf(stream, buffer) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) {
    if streams::fd_of(stream).is_none() {
        // SAFETY: the caller's promise.
        unsafe { real::setbuffer(stream, buffer, size) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setlinebuf(stream: *mut FILE) {
    if streams::fd_of(stream).is_none() {
        // SAFETY: the caller's promise.
        unsafe { real::setlinebuf(stream) };
    }
}
