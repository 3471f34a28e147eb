//! Wakes a thread of the process that waits for a request.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::AtomicU32;

use code_log::Head;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

use super::request::is_sealed;

/// Wakes threads that wait for a change of the log's control word. This has no effect if there are none, or if the log's file
/// cannot be mapped safely: then the process applies the request with its next announcement.
pub fn wake(log: &OwnedFd) {
    // If the file could shrink, the page might no longer exist when the kernel accesses it.
    if !is_sealed(log) {
        return;
    }
    let size = rustix::param::page_size();
    // SAFETY: this creates a new mapping at an address that the kernel chooses, so it replaces no memory. It is read-only.
    let base = unsafe { mmap(ptr::null_mut(), size, ProtFlags::READ, MapFlags::SHARED, log, 0) };
    let Ok(base) = base else { return };
    // SAFETY: the word is aligned and within the page, and the page stays mapped until the end of this function. The word is not
    // written through this reference; the kernel only uses its address. The page exists in the file: the log's head was read
    // from it, and the seal keeps the file from shrinking.
    let word = unsafe { AtomicU32::from_ptr(base.byte_add(Head::CONTROL as usize).cast::<u32>()) };
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX);
    // SAFETY: the page was mapped above, and no reference to it is used after this point.
    let _ = unsafe { munmap(base, size) };
}
