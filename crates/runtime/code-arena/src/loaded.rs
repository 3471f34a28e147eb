//! The executable mapping of a file.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::file::File;
use crate::layout::Layout;

/// The file, mapped as a loader does.
#[derive(Debug)]
pub(crate) enum LoadedObject {
    /// Linked by the process's own loader.
    Linked { handle: NonNull<c_void>, base: usize },
    /// Mapped by us.
    Mapped { base: usize, size: usize },
}

// SAFETY: any thread may close a handle; the rest are numbers.
unsafe impl Send for LoadedObject {}

/// The part of `struct link_map` that is the same everywhere.
#[repr(C)]
struct LinkMap {
    base: usize,
}

/// Where the loader put a file.
#[cfg(any(target_env = "gnu", target_env = "musl"))]
fn base_of(handle: NonNull<c_void>) -> Option<usize> {
    #[cfg(target_env = "gnu")]
    use libc::{RTLD_DI_LINKMAP, dlinfo};
    // The crate `libc` lacks both for musl. The number is that of musl's `dlfcn.h`.
    #[cfg(target_env = "musl")]
    const RTLD_DI_LINKMAP: libc::c_int = 2;
    #[cfg(target_env = "musl")]
    unsafe extern "C" {
        fn dlinfo(handle: *mut c_void, request: libc::c_int, answer: *mut c_void) -> libc::c_int;
    }
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: this request stores a pointer to the handle's link map.
    let failed =
        unsafe { dlinfo(handle.as_ptr(), RTLD_DI_LINKMAP, (&raw mut map).cast::<c_void>()) };
    // SAFETY: null, or valid as long as the handle is open.
    if failed == 0 { unsafe { map.as_ref() }.map(|map| map.base) } else { None }
}

/// Not known: the file is mapped instead.
#[cfg(not(any(target_env = "gnu", target_env = "musl")))]
fn base_of(_: NonNull<c_void>) -> Option<usize> {
    None
}

impl LoadedObject {
    /// Makes the process's loader link the file, which must be complete by now.
    pub(crate) fn link(file: &File) -> Option<Self> {
        // SAFETY: the file has nothing that a loader would run or bind.
        let handle = unsafe {
            libc::dlopen(file.path.as_c_str().as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL)
        };
        let Some(handle) = NonNull::new(handle) else {
            // Clear the error message: otherwise the host would attribute it to its own calls.
            // SAFETY: it may be called at any time.
            unsafe { libc::dlerror() };
            return None;
        };
        match base_of(handle) {
            Some(base) => Some(Self::Linked { handle, base }),
            None => {
                // SAFETY: opened above.
                unsafe { libc::dlclose(handle.as_ptr()) };
                None
            }
        }
    }

    /// Maps the file.
    pub(crate) fn map(file: &File, layout: &Layout) -> io::Result<Self> {
        let size = layout.mapped();
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            mmap_anonymous(ptr::null_mut(), size, ProtFlags::empty(), flags)
        }?;
        // Dropping this unmaps it.
        let mapped = Self::Mapped { base: base.expose_provenance(), size };
        let pieces = [
            (0, layout.page, ProtFlags::READ),
            (layout.text.start, layout.text.len(), ProtFlags::READ | ProtFlags::EXEC),
            (layout.hash, layout.dynamic - layout.hash, ProtFlags::READ),
        ];
        for (at, size, protection) in pieces {
            // SAFETY: within the reserved range, which is not in use.
            unsafe {
                let flags = MapFlags::SHARED | MapFlags::FIXED;
                mmap(base.byte_add(at), size, protection, flags, file.fd()?, at as u64)
            }?;
        }
        Ok(mapped)
    }

    /// Makes the text writable where it runs. A loader maps it privately: what is written would not reach the file.
    pub(crate) fn make_writable(&self, file: &File, layout: &Layout) -> rustix::io::Result<()> {
        let (at, size) = (layout.text.start, layout.text.len());
        let place = ptr::with_exposed_provenance_mut(self.base().wrapping_add(at));
        let protection = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: this mapping's text, in which nothing is allocated yet, is replaced by the same bytes of the same file.
        unsafe { mmap(place, size, protection, flags, file.fd()?, at as u64) }?;
        Ok(())
    }

    /// The address of the file's first byte.
    pub(crate) fn base(&self) -> usize {
        match *self {
            Self::Linked { base, .. } | Self::Mapped { base, .. } => base,
        }
    }

    /// Whether the process's own loader has linked it.
    pub(crate) fn is_linked(&self) -> bool {
        matches!(self, Self::Linked { .. })
    }

    /// Reads a byte of this mapping.
    ///
    /// # Safety
    /// It is mapped and has disk space.
    pub(crate) unsafe fn byte(&self, at: usize) -> u8 {
        let place = ptr::with_exposed_provenance::<u8>(self.base().wrapping_add(at));
        // SAFETY: guaranteed by the caller.
        unsafe { place.read_volatile() }
    }
}

impl Drop for LoadedObject {
    fn drop(&mut self) {
        match *self {
            // SAFETY: we opened it, and its code does not run any more: regions keep the arena alive.
            Self::Linked { handle, .. } => unsafe {
                libc::dlclose(handle.as_ptr());
            },
            // SAFETY: our own, and unused, as above.
            Self::Mapped { base, size } => unsafe {
                let _ = munmap(ptr::with_exposed_provenance_mut(base), size);
            },
        }
    }
}
