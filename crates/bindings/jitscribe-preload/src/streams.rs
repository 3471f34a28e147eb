//! Streams of the C library (`FILE`) to files that are watched.
//!
//! The C library writes a stream's buffer with an internal function that cannot be interposed. So a stream to a watched file is
//! replaced by one of `fopencookie`, whose functions are here: unbuffered for a dump, line-buffered for a map, so that
//! announcements do not wait for a full buffer. Behind it is the real stream, which only holds the file's descriptor and closes
//! it. All functions that write to streams are the C library's own.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use libc::{FILE, off64_t, size_t, ssize_t};

use crate::names::Kind;
use crate::{guest, real, watch};

/// Maximum number of streams. Others stay the C library's own, and are read when they are closed.
const MOST: usize = 32;

/// A stream that was made here.
struct Stream {
    /// The stream that the program has; null for a free entry, [`TAKEN`] for one that is being filled.
    outer: AtomicPtr<FILE>,
    inner: AtomicPtr<FILE>,
    fd: AtomicI32,
}

static STREAMS: [Stream; MOST] = [const {
    Stream {
        outer: AtomicPtr::new(std::ptr::null_mut()),
        inner: AtomicPtr::new(std::ptr::null_mut()),
        fd: AtomicI32::new(-1),
    }
}; MOST];
/// Number of streams made here.
static COUNT: AtomicUsize = AtomicUsize::new(0);

const TAKEN: *mut FILE = std::ptr::without_provenance_mut(1);

/// `cookie_io_functions_t`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C-unwind" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

/// Replaces `inner`, whose descriptor is watched. Returns `inner` itself if it cannot be replaced.
///
/// # Safety
/// `inner` is a stream that no other code has, and `mode` a string as for `fopen`.
pub(crate) unsafe fn wrap(
    inner: *mut FILE,
    fd: c_int,
    mode: *const c_char,
    kind: Kind,
) -> *mut FILE {
    let free = STREAMS.iter().find(|stream| {
        stream.outer.compare_exchange(std::ptr::null_mut(), TAKEN, AcqRel, Relaxed).is_ok()
    });
    let Some(stream) = free else { return inner };
    // SAFETY: a string, as the caller guarantees.
    let mode = unsafe { std::ffi::CStr::from_ptr(mode) }.to_bytes();
    let with_plus = mode.contains(&b'+');
    let plain: &[u8; 3] = match (mode.first(), with_plus) {
        (Some(b'a'), false) => b"a\0\0",
        (Some(b'a'), true) => b"a+\0",
        (Some(b'r'), _) => b"r+\0",
        (_, false) => b"w\0\0",
        (_, true) => b"w+\0",
    };
    stream.inner.store(inner, Relaxed);
    stream.fd.store(fd, Relaxed);
    let cookie = std::ptr::from_ref(stream).cast_mut().cast::<c_void>();
    // SAFETY: the cookie is never freed, the mode is NUL-terminated, and the functions take such a cookie.
    let outer = unsafe {
        fopencookie(cookie, plain.as_ptr().cast(), Functions { read, write, seek, close })
    };
    if outer.is_null() {
        stream.outer.store(std::ptr::null_mut(), Release);
        return inner;
    }
    let how = if kind == Kind::Map { libc::_IOLBF } else { libc::_IONBF };
    // SAFETY: a new stream, which has not been used.
    unsafe { real::setvbuf(outer, std::ptr::null_mut(), how, 4096) };
    stream.outer.store(outer, Release);
    COUNT.fetch_add(1, Release);
    outer
}

/// The descriptor behind a stream that was made here.
#[inline]
pub(crate) fn fd_of(stream: *mut FILE) -> Option<c_int> {
    if COUNT.load(Acquire) == 0 {
        return None;
    }
    find(stream).map(|stream| stream.fd.load(Relaxed))
}

fn find(stream: *mut FILE) -> Option<&'static Stream> {
    STREAMS.iter().find(|known| known.outer.load(Acquire) == stream)
}

/// For `freopen` of a stream that was made here: puts `inner` with the descriptor `fd` behind it, and returns the stream that was
/// behind it.
pub(crate) fn exchange(stream: *mut FILE, inner: *mut FILE, fd: c_int) -> Option<*mut FILE> {
    let stream = find(stream)?;
    stream.fd.store(fd, Relaxed);
    Some(stream.inner.swap(inner, AcqRel))
}

/// The stream of a cookie.
///
/// # Safety
/// It was passed on by `wrap`.
unsafe fn stream_of(cookie: *mut c_void) -> &'static Stream {
    // SAFETY: a reference to a static, as the caller guarantees.
    unsafe { &*cookie.cast::<Stream>() }
}

unsafe extern "C-unwind" fn read(
    cookie: *mut c_void,
    buffer: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: called by the C library with the cookie of `wrap`, and a buffer of this size.
    unsafe { libc::read(stream_of(cookie).fd.load(Relaxed), buffer.cast(), size) }
}

unsafe extern "C-unwind" fn write(
    cookie: *mut c_void,
    bytes: *const c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: called by the C library with the cookie of `wrap`.
    let fd = unsafe { stream_of(cookie) }.fd.load(Relaxed);
    if watch::may_be_inherited() {
        guest::isolated(|| watch::will_write(fd));
    }
    let mut done = 0;
    while done < size {
        // SAFETY: the bytes from `done` to `size`, which the C library passed.
        let written = unsafe { real::write(fd, bytes.add(done).cast(), size - done) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => done += written,
            _ => break,
        }
    }
    guest::isolated(|| watch::wrote(fd));
    // A short count is an error; 0 means that nothing was written.
    done as ssize_t
}

unsafe extern "C-unwind" fn seek(cookie: *mut c_void, to: *mut off64_t, from: c_int) -> c_int {
    // SAFETY: called by the C library with the cookie of `wrap`, and a valid place.
    let place = unsafe { libc::lseek64(stream_of(cookie).fd.load(Relaxed), *to, from) };
    if place < 0 {
        return -1;
    }
    // SAFETY: as above.
    unsafe { *to = place };
    0
}

unsafe extern "C-unwind" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: called by the C library with the cookie of `wrap`, once.
    let stream = unsafe { stream_of(cookie) };
    let inner = stream.inner.swap(std::ptr::null_mut(), AcqRel);
    let fd = stream.fd.swap(-1, Relaxed);
    COUNT.fetch_sub(1, Release);
    stream.outer.store(std::ptr::null_mut(), Release);
    guest::isolated(|| watch::closed(fd));
    // SAFETY: the stream that was behind this one, which no other code has.
    unsafe { real::fclose(inner) }
}
