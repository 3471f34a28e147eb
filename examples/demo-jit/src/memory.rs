//! Executable memory that is never writable and executable at once.
//!
//! All system calls on memory of this crate are here.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use rustix::process::set_virtual_memory_region_name;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What the code lies in, as it shows in `/proc/PID/maps` and in recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// A private anonymous mapping; perf calls it `//anon`.
    #[default]
    Anonymous,
    /// The same with a name: `[anon:demo code]`, where perf does not look for a perf map. The
    /// kernel must have been built with `CONFIG_ANON_VMA_NAME`.
    Named,
    /// A memfd mapped twice, once to write and once to run: `/memfd:demo-code (deleted)`.
    Memfd,
}

/// A mapping of this process's own, unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    size: usize,
}

impl Mapping {
    fn new(mapped: rustix::io::Result<*mut c_void>, size: usize) -> Result<Self, Error> {
        let start = mapped.map_err(Error::system("map memory"))?;
        let start = NonNull::new(start.cast()).ok_or(Error::System {
            action: "map memory",
            cause: std::io::Error::other("the kernel placed it at 0"),
        })?;
        Ok(Self { start, size })
    }

    fn protect(&self, flags: MprotectFlags) -> Result<(), Error> {
        // SAFETY: The pages are this mapping's own. No Rust reference into them lives across the
        // call: `Memory` makes references for the length of a borrow of itself, and changes the
        // protection only by `&mut`. Nor does generated code run: see `Memory::write`.
        unsafe { mprotect(self.start.as_ptr().cast(), self.size, flags) }
            .map_err(Error::system("change the protection of the code memory"))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `size` are a whole mapping made by `mmap`, nobody else unmaps it, and
        // whoever borrowed from it has borrowed from its owner, which is gone. An error (it cannot
        // be one of the arguments) leaves the memory mapped, which is harmless.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.size) };
    }
}

/// The code memory.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Where code runs; readable.
    code: Mapping,
    /// Where a memfd's pages are written.
    writable: Option<Mapping>,
}

impl Memory {
    /// Maps `size` bytes, a multiple of the page size, zeroed and executable.
    pub(crate) fn new(kind: MemoryKind, size: usize) -> Result<Self, Error> {
        let run = ProtFlags::READ | ProtFlags::EXEC;
        if kind == MemoryKind::Memfd {
            let fd = memfd_create("demo-code", MemfdFlags::CLOEXEC)
                .map_err(Error::system("make a memfd"))?;
            ftruncate(&fd, size as u64).map_err(Error::system("size a memfd"))?;
            let map = |protection| {
                // SAFETY: The kernel chooses a free place, so no memory in use is replaced. The
                // file is private to this process, which never makes it shorter.
                let mapped =
                    unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::SHARED, &fd, 0) };
                Mapping::new(mapped, size)
            };
            let writable = map(ProtFlags::READ | ProtFlags::WRITE)?;
            return Ok(Self { code: map(run)?, writable: Some(writable) });
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: As above: a fresh mapping at a free place.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), size, run, flags) };
        let code = Mapping::new(mapped, size)?;
        if kind == MemoryKind::Named {
            // SAFETY: The mapping is `size` readable bytes, not written while the slice lives.
            let region = unsafe { slice::from_raw_parts(code.start.as_ptr(), size) };
            set_virtual_memory_region_name(region, Some(c"demo code"))
                .map_err(Error::system("name the code memory"))?;
        }
        Ok(Self { code, writable: None })
    }

    /// The address of the first byte, where it runs.
    pub(crate) fn address(&self) -> usize {
        self.code.start.as_ptr().addr()
    }

    pub(crate) fn size(&self) -> usize {
        self.code.size
    }

    /// What is in the memory.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The mapping is readable except within `write`, which holds `&mut self`; for as
        // long as this borrow lives nothing is written.
        unsafe { slice::from_raw_parts(self.code.start.as_ptr(), self.code.size) }
    }

    /// Lets `change` change the bytes; before and after, they can be run and not written.
    ///
    /// Generated code runs only within `native::Table::call`, whose caller lends this memory
    /// for the length of the call; `&mut self` therefore means that none is running.
    pub(crate) fn write<R>(&mut self, change: impl FnOnce(&mut [u8]) -> R) -> Result<R, Error> {
        let target = self.writable.as_ref().unwrap_or(&self.code);
        let flips = self.writable.is_none();
        if flips {
            target.protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
        }
        // SAFETY: The mapping is readable and writable now. `&mut self` excludes every other
        // reference to it, and (for a memfd) to the same pages mapped as code.
        let bytes = unsafe { slice::from_raw_parts_mut(target.start.as_ptr(), target.size) };
        let result = change(bytes);
        if flips {
            target.protect(MprotectFlags::READ | MprotectFlags::EXEC)?;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_there_and_never_writable_and_executable() {
        for kind in [MemoryKind::Anonymous, MemoryKind::Named, MemoryKind::Memfd] {
            let mut memory = match Memory::new(kind, 1 << 16) {
                Ok(memory) => memory,
                // A kernel without CONFIG_ANON_VMA_NAME.
                Err(Error::System { action: "name the code memory", .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let within = memory
                .write(|bytes| {
                    bytes[77] = 0xc3;
                    std::fs::read_to_string("/proc/self/maps").unwrap()
                })
                .unwrap();
            assert_eq!(memory.bytes()[77], 0xc3, "{kind:?}");
            let after = std::fs::read_to_string("/proc/self/maps").unwrap();
            let address = format!("{:x}-", memory.address());
            let line = after.lines().find(|line| line.starts_with(&address)).unwrap();
            assert!(line.contains(" r-x"), "{line}");
            assert!(!within.contains("rwx"), "{within}");
            match kind {
                MemoryKind::Anonymous => {}
                MemoryKind::Named => assert!(line.ends_with("[anon:demo code]"), "{line}"),
                MemoryKind::Memfd => assert!(line.contains("/memfd:demo-code"), "{line}"),
            }
        }
    }
}
