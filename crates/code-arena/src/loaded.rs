//! The executable view of a file.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::file::File;
use crate::layout::Layout;

/// The file, as a loader maps it.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// By the process's own loader.
    Linked { handle: NonNull<c_void>, base: usize },
    /// By us.
    Mapped { base: usize, size: usize },
}

// SAFETY: a handle may be closed by any thread; the rest is numbers.
unsafe impl Send for Loaded {}

/// `struct link_map`, as far as it is the same everywhere.
#[repr(C)]
struct LinkMap {
    base: usize,
}

impl Loaded {
    /// Has the process's loader link the file, which must be whole by now.
    pub(crate) fn link(file: &File) -> Option<Self> {
        let path = CString::new(file.path.as_os_str().as_encoded_bytes()).ok()?;
        // SAFETY: the file has nothing that a loader would run or bind.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let Some(handle) = NonNull::new(handle) else {
            // What is said of it is nobody's business: it is fetched, lest the host takes it for its own.
            // SAFETY: it may be called at any time.
            unsafe { libc::dlerror() };
            return None;
        };
        let mut map: *const LinkMap = ptr::null();
        // SAFETY: this request stores a pointer to the handle's link map.
        let failed = unsafe {
            let map = (&raw mut map).cast::<c_void>();
            libc::dlinfo(handle.as_ptr(), libc::RTLD_DI_LINKMAP, map)
        };
        let base = if failed == 0 {
            // SAFETY: null, or valid as long as the handle is open.
            unsafe { map.as_ref() }.map(|map| map.base)
        } else {
            None
        };
        match base {
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
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            mmap_anonymous(ptr::null_mut(), size, ProtFlags::empty(), flags)
        }?;
        // Freed from here on.
        let mapped = Self::Mapped { base: base.expose_provenance(), size };
        let pieces = [
            (0, layout.page, ProtFlags::READ),
            (layout.text.start, layout.text.len(), ProtFlags::READ | ProtFlags::EXEC),
            (layout.hash, layout.dynamic - layout.hash, ProtFlags::READ),
        ];
        for (at, size, protection) in pieces {
            // SAFETY: within what was reserved, which nobody uses.
            unsafe {
                let flags = MapFlags::SHARED | MapFlags::FIXED;
                mmap(base.byte_add(at), size, protection, flags, file.fd.as_fd(), at as u64)
            }?;
        }
        Ok(mapped)
    }

    /// Where the file's first byte is.
    pub(crate) fn base(&self) -> usize {
        match *self {
            Self::Linked { base, .. } | Self::Mapped { base, .. } => base,
        }
    }

    /// Whether the process's own loader knows it.
    pub(crate) fn is_linked(&self) -> bool {
        matches!(self, Self::Linked { .. })
    }

    /// A byte as it is seen here; the caller knows that it is mapped and has disk space.
    ///
    /// # Safety
    /// It is.
    pub(crate) unsafe fn byte(&self, at: usize) -> u8 {
        let place = ptr::with_exposed_provenance::<u8>(self.base().wrapping_add(at));
        // SAFETY: the caller's promise.
        unsafe { place.read_volatile() }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        match *self {
            // SAFETY: opened by us, and nobody runs its code any more: rooms keep the arena alive.
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
