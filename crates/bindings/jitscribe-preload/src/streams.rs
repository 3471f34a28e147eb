//! Streams of the C library (`FILE`) to files that are watched.
//!
//! The C library writes a stream's buffer with an internal function that cannot be interposed. So a stream to a watched file is
//! replaced by one of `fopencookie`, whose functions are here: unbuffered for a dump, line-buffered for a map, so that
//! announcements do not wait for a full buffer. Behind it is the real stream, which only holds the file's descriptor and closes
//! it. All functions that write to streams are the C library's own.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use libc::{FILE, off64_t, size_t, ssize_t};

use crate::names::Kind;
use crate::unfinished::{Lacking, Unfinished};
use crate::{guest, real, watch};

/// Maximum number of streams. Others stay the C library's own, and are read when they are closed.
const MOST: usize = 32;

/// A stream that was made here, and its cookie.
#[repr(C)]
struct Stream {
    /// The stream that the program has; null for a free entry, [`TAKEN`] for one that is being filled.
    outer: AtomicPtr<FILE>,
    inner: AtomicPtr<FILE>,
    fd: AtomicI32,
    /// Stays unknown if the file is a map.
    record: Unfinished,
}

static STREAMS: [Stream; MOST] = [const {
    Stream {
        outer: AtomicPtr::new(std::ptr::null_mut()),
        inner: AtomicPtr::new(std::ptr::null_mut()),
        fd: AtomicI32::new(-1),
        record: Unfinished::new(),
    }
}; MOST];
/// Number of streams made here.
static COUNT: AtomicUsize = AtomicUsize::new(0);

const TAKEN: *mut FILE = std::ptr::without_provenance_mut(1);

/// `cookie_io_functions_t`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(&'static Stream, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C-unwind" fn(&'static Stream, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C-unwind" fn(&'static Stream, *mut off64_t, c_int) -> c_int,
    close: unsafe extern "C-unwind" fn(&'static Stream) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: &'static Stream, mode: *const c_char, functions: Functions)
    -> *mut FILE;
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
    stream.record.forget();
    // SAFETY: the mode is NUL-terminated, and the functions take this cookie.
    let outer = unsafe {
        fopencookie(
            stream,
            plain.as_ptr().cast(),
            Functions { read: read_from, write, seek, close },
        )
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

/// A file was written or may be written other than by its stream, so that what streams write need not follow what they wrote before.
pub(crate) fn forget_records() {
    STREAMS.iter().for_each(|stream| stream.record.forget());
}

fn find(stream: *mut FILE) -> Option<&'static Stream> {
    STREAMS.iter().find(|known| known.outer.load(Acquire) == stream)
}

/// For `freopen` of a stream that was made here: puts `inner` with the descriptor `fd` behind it, and returns the stream that was
/// behind it.
pub(crate) fn exchange(stream: *mut FILE, inner: *mut FILE, fd: c_int) -> Option<*mut FILE> {
    let stream = find(stream)?;
    stream.fd.store(fd, Relaxed);
    stream.record.forget();
    Some(stream.inner.swap(inner, AcqRel))
}

unsafe extern "C-unwind" fn read_from(
    stream: &'static Stream,
    buffer: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: called by the C library with a buffer of this size.
    unsafe { libc::read(stream.fd.load(Relaxed), buffer.cast(), size) }
}

unsafe extern "C-unwind" fn write(
    stream: &'static Stream,
    bytes: *const c_char,
    size: size_t,
) -> ssize_t {
    // callgrind counts what happens here, so it takes as few instructions as possible: functions of their own save registers only
    // when that is needed.
    if let Some(after) = stream.record.within(size) {
        // SAFETY: guaranteed by the caller.
        return unsafe { write_part(stream, bytes, size, after) };
    }
    // SAFETY: this is called if there are as many bytes.
    let head = || unsafe { bytes.cast::<[u8; 8]>().as_ref() }.copied();
    match stream.record.at_beginning(size, head) {
        // SAFETY: guaranteed by the caller.
        Some(after) => unsafe { write_part(stream, bytes, size, after) },
        // SAFETY: as above.
        None => unsafe { write_and_read(stream, bytes, size) },
    }
}

/// Writes a part of a record that completes nothing that could be announced.
///
/// # Safety
/// There are `size` bytes.
#[inline(never)]
unsafe fn write_part(
    stream: &Stream,
    bytes: *const c_char,
    size: size_t,
    after: Lacking,
) -> ssize_t {
    // If this turns out to be wrong, the file is read.
    stream.record.set(after);
    // SAFETY: guaranteed by the caller.
    let written = unsafe { real::write(stream.fd.load(Relaxed), bytes.cast(), size) };
    if written as size_t == size {
        return written;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { write_rest(stream, bytes, size, written) }
}

/// Writes something that may complete a line or a record.
///
/// # Safety
/// There are `size` bytes.
#[inline(never)]
unsafe fn write_and_read(stream: &Stream, bytes: *const c_char, size: size_t) -> ssize_t {
    if watch::may_be_inherited() {
        guest::isolated(|| watch::will_write(stream.fd.load(Relaxed)));
    }
    // SAFETY: guaranteed by the caller.
    let written = unsafe { real::write(stream.fd.load(Relaxed), bytes.cast(), size) };
    if written as size_t != size {
        // SAFETY: guaranteed by the caller.
        return unsafe { write_rest(stream, bytes, size, written) };
    }
    read(stream);
    size as ssize_t
}

/// Reads what the stream has written.
fn read(stream: &Stream) {
    guest::isolated(|| stream.record.was_read(watch::wrote_by_stream(stream.fd.load(Relaxed))));
}

/// After a write that was not complete.
///
/// # Safety
/// There are `size` bytes, and `written` is less.
#[cold]
unsafe fn write_rest(
    stream: &Stream,
    bytes: *const c_char,
    size: size_t,
    mut written: ssize_t,
) -> ssize_t {
    let mut done = 0;
    while let Ok(more) = size_t::try_from(written)
        && more > 0
    {
        done += more;
        if done >= size {
            break;
        }
        // SAFETY: the bytes from `done` to `size`.
        written =
            unsafe { real::write(stream.fd.load(Relaxed), bytes.add(done).cast(), size - done) };
    }
    read(stream);
    // A short count is an error; 0 means that nothing was written.
    done as ssize_t
}

unsafe extern "C-unwind" fn seek(stream: &'static Stream, to: *mut off64_t, from: c_int) -> c_int {
    stream.record.forget();
    // SAFETY: a valid place, which the C library passed.
    let place = unsafe { libc::lseek64(stream.fd.load(Relaxed), *to, from) };
    if place < 0 {
        return -1;
    }
    // SAFETY: as above.
    unsafe { *to = place };
    0
}

unsafe extern "C-unwind" fn close(stream: &'static Stream) -> c_int {
    let inner = stream.inner.swap(std::ptr::null_mut(), AcqRel);
    let fd = stream.fd.swap(-1, Relaxed);
    COUNT.fetch_sub(1, Release);
    stream.outer.store(std::ptr::null_mut(), Release);
    guest::isolated(|| watch::closed(fd));
    // SAFETY: the stream that was behind this one, which no other code has.
    unsafe { real::fclose(inner) }
}
