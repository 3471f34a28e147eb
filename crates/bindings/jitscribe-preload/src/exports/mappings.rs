//! Functions that map files into memory.

use std::ffi::{c_int, c_void};

use libc::{off_t, size_t};

use crate::{guest, real, span, watch};

macro_rules! mapping {
    ($($name:ident;)*) => {$(
        exported! {
            unsafe fn $name(
                address: *mut c_void,
                size: size_t,
                access: c_int,
                flags: c_int,
                fd: c_int,
                at: off_t,
            ) -> *mut c_void {
                // SAFETY: guaranteed by the caller.
                let mapped = unsafe { real::$name(address, size, access, flags, fd, at) };
                note_mapping(mapped, access, flags, fd);
                mapped
            }
        }
    )*};
}

mapping! {
    mmap;
    mmap64;
}

/// Ignores the marker by which perf finds a dump: it is private, and not writable.
#[inline]
fn note_mapping(mapped: *mut c_void, access: c_int, flags: c_int, fd: c_int) {
    /// Both kinds of shared mappings have this bit, and private mappings do not.
    const SHARED: c_int = libc::MAP_SHARED;
    if span::holds(fd)
        && mapped != libc::MAP_FAILED
        && access & libc::PROT_WRITE != 0
        && flags & libc::MAP_ANONYMOUS == 0
        && flags & SHARED != 0
    {
        guest::isolated(|| watch::mapped(fd));
    }
}
