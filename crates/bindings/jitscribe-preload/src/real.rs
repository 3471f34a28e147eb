//! The real functions behind the interposed ones: the next definition of their names, found through the dynamic
//! linker.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{FILE, iovec, mode_t, off_t, size_t, ssize_t};

/// The result of a call if the function does not exist, with `errno` set. With glibc, all exist.
trait Missing {
    const MISSING: Self;
}

impl Missing for c_int {
    const MISSING: Self = -1;
}

impl Missing for ssize_t {
    const MISSING: Self = -1;
}

impl Missing for () {
    const MISSING: Self = ();
}

impl<T> Missing for *mut T {
    const MISSING: Self = std::ptr::without_provenance_mut(usize::MAX);
}

/// Finds the next function of a name. Called rarely, because the result is cached if there is one.
#[cold]
fn find(name: &CStr, place: &AtomicPtr<c_void>) -> *mut c_void {
    // SAFETY: the name is NUL-terminated. The dynamic linker neither keeps it nor calls one of the functions here.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        place.store(found, Relaxed);
    }
    found
}

/// Address of the real `dlopen`. It exists if it is called.
pub(crate) fn address_of_dlopen() -> *mut c_void {
    static PLACE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let known = PLACE.load(Relaxed);
    if known.is_null() { find(c"dlopen", &PLACE) } else { known }
}

/// The real `dlopen`.
///
/// # Safety
/// As for the C function. It may unwind out of what an object does when it is loaded.
pub(crate) unsafe fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: the C library's function of this name, which has this signature; the rest is guaranteed by the caller.
    unsafe {
        std::mem::transmute::<
            *mut c_void,
            unsafe extern "C-unwind" fn(*const c_char, c_int) -> *mut c_void,
        >(address_of_dlopen())(path, flags)
    }
}

/// The names of all functions that are exported here.
pub(crate) fn names() -> impl Iterator<Item = &'static CStr> {
    let others = [c"dprintf", c"__dprintf_chk", c"dlopen"];
    FUNCTIONS.iter().chain(missing_is_null::STREAMS).copied().chain(others)
}

macro_rules! c_name {
    ($name:ident) => {
        const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            }
        }
    };
}

macro_rules! real {
    ($list:ident: $($name:ident($($argument:ident: $type:ty),*) -> $returned:ty;)*) => {
        pub(super) const $list: &[&CStr] = &[$(c_name!($name)),*];
        $(
        /// The real function of this name.
        ///
        /// # Safety
        /// As for the C function. It may unwind when a thread is cancelled.
        #[inline]
        pub(crate) unsafe fn $name($($argument: $type),*) -> $returned {
            /// The real function, or [`find_and_call`], so that a call needs no comparison.
            static PLACE: AtomicPtr<c_void> =
                AtomicPtr::new(find_and_call as unsafe extern "C-unwind" fn($($type),*) -> $returned as *mut c_void);

            #[cold]
            unsafe extern "C-unwind" fn find_and_call($($argument: $type),*) -> $returned {
                if find(c_name!($name), &PLACE).is_null() {
                    crate::guest::set_errno(libc::ENOSYS);
                    return <$returned as Missing>::MISSING;
                }
                // SAFETY: guaranteed by the caller.
                unsafe { $name($($argument),*) }
            }

            // SAFETY: the C library's function of this name, or `find_and_call`, which have this signature. Those with `...` take their
            // last argument, if they read it, from where a named one is passed.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $returned>(PLACE.load(Relaxed))
            };
            // SAFETY: guaranteed by the caller.
            unsafe { function($($argument),*) }
        }
    )*};
}

real! {
    FUNCTIONS:
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    creat(path: *const c_char, mode: mode_t) -> c_int;
    creat64(path: *const c_char, mode: mode_t) -> c_int;
    __open_2(path: *const c_char, flags: c_int) -> c_int;
    __open64_2(path: *const c_char, flags: c_int) -> c_int;
    __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int;
    __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int;

    write(fd: c_int, bytes: *const c_void, size: size_t) -> ssize_t;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    pwrite(fd: c_int, bytes: *const c_void, size: size_t, at: off_t) -> ssize_t;
    pwrite64(fd: c_int, bytes: *const c_void, size: size_t, at: off_t) -> ssize_t;
    pwritev(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t;
    pwritev64(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t;
    pwritev2(fd: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t;
    pwritev64v2(fd: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t;
    sendfile(to: c_int, from: c_int, at: *mut off_t, size: size_t) -> ssize_t;
    sendfile64(to: c_int, from: c_int, at: *mut off_t, size: size_t) -> ssize_t;
    copy_file_range(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, size: size_t, flags: c_uint) -> ssize_t;
    splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, size: size_t, flags: c_uint) -> ssize_t;
    ftruncate(fd: c_int, size: off_t) -> c_int;
    ftruncate64(fd: c_int, size: off_t) -> c_int;
    vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;

    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    closefrom(first: c_int) -> ();
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, new: c_int) -> c_int;
    dup3(fd: c_int, new: c_int, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int;

    mmap(address: *mut c_void, size: size_t, access: c_int, flags: c_int, fd: c_int, at: off_t) -> *mut c_void;
    mmap64(address: *mut c_void, size: size_t, access: c_int, flags: c_int, fd: c_int, at: off_t) -> *mut c_void;

    fclose(stream: *mut FILE) -> c_int;
    fileno(stream: *mut FILE) -> c_int;
    fileno_unlocked(stream: *mut FILE) -> c_int;
    setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, size: size_t) -> c_int;
    setbuf(stream: *mut FILE, buffer: *mut c_char) -> ();
    setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) -> ();
    setlinebuf(stream: *mut FILE) -> ();
}

/// Functions that return a null pointer on failure.
macro_rules! real_stream {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        mod missing_is_null {
            use super::*;
            real! { STREAMS: $($name($($argument: $type),*) -> *mut FILE;)* }
        }
        $(
            /// The real function of this name.
            ///
            /// # Safety
            /// As for the C function.
            #[inline]
            pub(crate) unsafe fn $name($($argument: $type),*) -> *mut FILE {
                // SAFETY: guaranteed by the caller.
                let stream = unsafe { missing_is_null::$name($($argument),*) };
                if stream == Missing::MISSING { std::ptr::null_mut() } else { stream }
            }
        )*
    };
}

real_stream! {
    fopen(path: *const c_char, mode: *const c_char);
    fopen64(path: *const c_char, mode: *const c_char);
    fdopen(fd: c_int, mode: *const c_char);
    freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE);
    freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE);
}
