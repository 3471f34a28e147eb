//! Functions that open and close streams, and return their descriptors.

use std::ffi::{CStr, c_char, c_int};

use libc::{FILE, size_t};

use super::kind_of;
use crate::names::Kind;
use crate::{guest, real, span, streams, watch};

unsafe extern "C-unwind" {
    /// It writes, and a cancelled thread unwinds through us; `libc` declares it as if it could not unwind.
    fn fflush(stream: *mut FILE) -> c_int;
}

/// Whether a stream of this mode can be written.
///
/// # Safety
/// It is null or a NUL-terminated string.
unsafe fn writes(mode: *const c_char) -> bool {
    // SAFETY: a string, as the caller guarantees.
    !mode.is_null()
        && unsafe { CStr::from_ptr(mode) }.to_bytes().iter().any(|byte| b"wa+".contains(byte))
}

/// The kind of a file that should be watched.
///
/// # Safety
/// Both are null or NUL-terminated strings.
unsafe fn kind_to_watch(path: *const c_char, mode: *const c_char) -> Option<Kind> {
    // SAFETY: guaranteed by the caller.
    unsafe { kind_of(path).filter(|_| writes(mode)) }
}

/// Watches the file of a new stream, and returns the stream for the program.
///
/// # Safety
/// The stream is new, or null, and `mode` a string.
unsafe fn opened(stream: *mut FILE, mode: *const c_char, kind: Option<Kind>) -> *mut FILE {
    let Some(kind) = kind.filter(|_| !stream.is_null()) else { return stream };
    // SAFETY: a stream.
    let fd = unsafe { real::fileno(stream) };
    guest::isolated(|| watch::opened(fd, kind));
    if watch::kind_of(fd).is_none() {
        return stream;
    }
    // SAFETY: a new stream, of whose mode the C library had the string.
    unsafe { streams::wrap(stream, fd, mode, kind) }
}

macro_rules! opening {
    ($($open:ident, $open_again:ident;)*) => {$(
        exported! {
            unsafe fn $open(path: *const c_char, mode: *const c_char) -> *mut FILE {
                // SAFETY: guaranteed by the caller.
                let kind = unsafe { kind_to_watch(path, mode) };
                // SAFETY: guaranteed by the caller.
                let stream = unsafe { real::$open(path, mode) };
                // SAFETY: the stream is new.
                unsafe { opened(stream, mode, kind) }
            }

            unsafe fn $open_again(
                path: *const c_char,
                mode: *const c_char,
                stream: *mut FILE,
            ) -> *mut FILE {
                // SAFETY: guaranteed by the caller.
                let kind = unsafe { kind_to_watch(path, mode) };
                let Some(before) = streams::fd_of(stream) else {
                    // SAFETY: guaranteed by the caller.
                    let stream = unsafe { real::$open_again(path, mode, stream) };
                    if let Some(kind) = kind.filter(|_| !stream.is_null()) {
                        // Nothing here sees what it writes.
                        // SAFETY: a stream.
                        let fd = unsafe { real::fileno(stream) };
                        guest::isolated(|| {
                            watch::opened(fd, kind);
                            watch::mapped(fd);
                        });
                    }
                    return stream;
                };
                if path.is_null() {
                    return stream;
                }
                // SAFETY: a stream of the caller.
                unsafe { fflush(stream) };
                // SAFETY: guaranteed by the caller.
                let inner = unsafe { real::$open(path, mode) };
                if inner.is_null() {
                    // SAFETY: a stream of the caller, which is closed if it cannot be reopened.
                    unsafe { real::fclose(stream) };
                    return inner;
                }
                // SAFETY: a stream.
                let fd = unsafe { real::fileno(inner) };
                if let Some(inner) = streams::exchange(stream, inner, fd) {
                    guest::isolated(|| watch::closed(before));
                    // SAFETY: no other code has it.
                    unsafe { real::fclose(inner) };
                }
                if let Some(kind) = kind {
                    guest::isolated(|| watch::opened(fd, kind));
                }
                stream
            }
        }
    )*};
}

opening! {
    fopen, freopen;
    fopen64, freopen64;
}

exported! {
    unsafe fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
        // SAFETY: guaranteed by the caller.
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

    unsafe fn fclose(stream: *mut FILE) -> c_int {
        // A watched stream that was not made here.
        if !stream.is_null() && !span::is_empty() && streams::fd_of(stream).is_none() {
            // SAFETY: a stream of the caller, which may have no descriptor.
            let fd = guest::with_errno_preserved(|| unsafe { real::fileno(stream) });
            if fd >= 0 && span::holds(fd) && watch::kind_of(fd).is_some() {
                // SAFETY: as above.
                unsafe { fflush(stream) };
                guest::isolated(|| watch::closed(fd));
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe { real::fclose(stream) }
    }

    unsafe fn fileno(stream: *mut FILE) -> c_int {
        match streams::fd_of(stream) {
            Some(fd) => fd,
            // SAFETY: guaranteed by the caller.
            None => unsafe { real::fileno(stream) },
        }
    }

    unsafe fn fileno_unlocked(stream: *mut FILE) -> c_int {
        match streams::fd_of(stream) {
            Some(fd) => fd,
            // SAFETY: guaranteed by the caller.
            None => unsafe { real::fileno_unlocked(stream) },
        }
    }

    /// Streams that were made here keep their buffer.
    unsafe fn setvbuf(
        stream: *mut FILE,
        buffer: *mut c_char,
        mode: c_int,
        size: size_t,
    ) -> c_int {
        match streams::fd_of(stream) {
            Some(_) => 0,
            // SAFETY: guaranteed by the caller.
            None => unsafe { real::setvbuf(stream, buffer, mode, size) },
        }
    }

    unsafe fn setbuf(stream: *mut FILE, buffer: *mut c_char) {
        if streams::fd_of(stream).is_none() {
            // SAFETY: guaranteed by the caller.
            unsafe { real::setbuf(stream, buffer) };
        }
    }

    unsafe fn setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) {
        if streams::fd_of(stream).is_none() {
            // SAFETY: guaranteed by the caller.
            unsafe { real::setbuffer(stream, buffer, size) };
        }
    }

    unsafe fn setlinebuf(stream: *mut FILE) {
        if streams::fd_of(stream).is_none() {
            // SAFETY: guaranteed by the caller.
            unsafe { real::setlinebuf(stream) };
        }
    }
}
