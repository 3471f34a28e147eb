//! Waking a thread of the process that waits for wishes.
#![allow(unsafe_code)]

use std::fs::File;
use std::ptr;
use std::sync::atomic::AtomicU32;

use code_log::Head;
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

/// Wakes whoever waits for a change of the log's control word. Without effect if nobody does, or if the log
/// is no file that can be mapped safely: then the wish is heard with the next announcement.
pub fn wake(log: &File) {
    // A file that may shrink could have no memory behind it by the time the kernel looks.
    if !fcntl_get_seals(log).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
        return;
    }
    let size = rustix::param::page_size();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let Ok(base) = (unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::SHARED, log, 0) })
    else {
        return;
    };
    // SAFETY: the word lies within the page, aligned, and the page stays mapped up to the end of this
    // function. The process writes it by atomics alone. Its memory is there: the log's head was read from it,
    // and the seal keeps the file from shrinking.
    let word = unsafe { AtomicU32::from_ptr(base.byte_add(Head::CONTROL as usize).cast::<u32>()) };
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX);
    // SAFETY: mapped above, and no reference to it is used from here on.
    let _ = unsafe { munmap(base, size) };
}
