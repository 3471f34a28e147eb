//! libunwind's functions and data structures.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// `UNW_INFO_FORMAT_IP_OFFSET` (1.2 and later): rows contain the start of code as an offset from `start_ip`, and the
/// place of its FDE as an offset from `segbase`.
const IP_OFFSET: i32 = 4;

/// `unw_dyn_info_t` of `libunwind-dynamic.h`, with the union's member for tables. Walks in other threads read it at
/// any time.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Entry {
    /// Used by libunwind: neighbours in the list.
    next: AtomicUsize,
    prev: AtomicUsize,
    start_ip: u64,
    pub(super) end_ip: AtomicU64,
    gp: u64,
    format: i32,
    pad: i32,
    load_offset: u64,
    name: u64,
    segbase: u64,
    /// In units of 8 bytes, the size of a row.
    table_len: u64,
    pub(super) table: AtomicUsize,
    /// The union is as large as its largest member; none is larger than this.
    reserve: [u64; 4],
}

impl Entry {
    /// An entry without any code yet.
    pub(super) fn new(start: u64, segbase: u64, table_len: usize) -> Self {
        Self {
            next: AtomicUsize::new(0),
            prev: AtomicUsize::new(0),
            start_ip: start,
            end_ip: AtomicU64::new(start),
            gp: 0,
            format: IP_OFFSET,
            pad: 0,
            load_offset: 0,
            name: 0,
            segbase,
            table_len: table_len as u64,
            table: AtomicUsize::new(0),
            reserve: [0; 4],
        }
    }
}

type Register = unsafe extern "C" fn(*mut c_void);
type Flush = unsafe extern "C" fn(*mut c_void, usize, usize);

/// The functions.
#[derive(Debug)]
pub(super) struct Functions {
    register: Register,
    /// Functions that flush the cache of unwind info, with their arguments: two libraries may have such a cache.
    flushes: [Option<(Flush, usize)>; 2],
}

#[cfg(target_arch = "x86_64")]
const FLUSHES: [(&CStr, &CStr, &CStr); 2] = [
    (c"libunwind.so.8", c"_Ux86_64_flush_cache", c"_ULx86_64_local_addr_space"),
    (c"libunwind-x86_64.so.8", c"_Ux86_64_flush_cache", c"_Ux86_64_local_addr_space"),
];
/// Elsewhere it is not safe: on ARM it unmaps tables that walks in other threads read.
#[cfg(not(target_arch = "x86_64"))]
const FLUSHES: [(&CStr, &CStr, &CStr); 0] = [];

impl Functions {
    /// Looks them up in the shared library, or in a program that is linked with it and exports it.
    pub(super) fn look() -> Option<Self> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return None;
        }
        let library = loaded(c"libunwind.so.8");
        let register = symbol(library, c"_U_dyn_register")?;
        // SAFETY: the function of this name has this type.
        let register = unsafe { std::mem::transmute::<*mut c_void, Register>(register) };
        let mut flushes = [None; 2];
        for (to, (library, function, space)) in flushes.iter_mut().zip(FLUSHES) {
            let library = loaded(library);
            *to = symbol(library, function).zip(symbol(library, space)).map(|(function, space)| {
                // SAFETY: the function and the variable of these names have these types. The variable is set when the
                // library is linked, and does not change.
                unsafe { (std::mem::transmute::<*mut c_void, Flush>(function), *space.cast()) }
            });
        }
        Some(Self { register, flushes })
    }

    /// # Safety
    /// The entry and all that it refers to stay for ever.
    pub(super) unsafe fn register(&self, entry: &'static Entry) {
        // SAFETY: guaranteed by the caller. libunwind only writes to its own two words.
        unsafe { (self.register)(std::ptr::from_ref(entry).cast_mut().cast()) };
    }

    /// Flushes libunwind's cache. It does not cache addresses that it did not find.
    pub(super) fn flush(&self) {
        for (flush, space) in self.flushes.iter().flatten() {
            // SAFETY: the library's own address space. The function increments a number, and sets others to zero that
            // are zero on this machine.
            unsafe { flush(std::ptr::with_exposed_provenance_mut(*space), 0, 0) };
        }
    }
}

/// A handle of a shared library that is loaded, and which is never unloaded from now on; or of all that the program
/// exports.
fn loaded(name: &CStr) -> *mut c_void {
    let flags = libc::RTLD_NOLOAD | libc::RTLD_NOW | libc::RTLD_NODELETE;
    // SAFETY: a lookup by a NUL-terminated name, which loads nothing.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if handle.is_null() { libc::RTLD_DEFAULT } else { handle }
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by a NUL-terminated name, in a library that stays.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Number of shared objects that were ever loaded, plus one.
pub(super) fn objects() -> u64 {
    extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        size: libc::size_t,
        adds: *mut c_void,
    ) -> c_int {
        if size > std::mem::offset_of!(libc::dl_phdr_info, dlpi_adds) {
            // SAFETY: the loader's description of an object, which has this field; and the number from below.
            unsafe { *adds.cast::<u64>() = (*info).dlpi_adds.wrapping_add(1) };
        }
        1
    }
    let mut adds = u64::MAX;
    // SAFETY: the function only reads the first object, and the number outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut adds).cast()) };
    adds
}
