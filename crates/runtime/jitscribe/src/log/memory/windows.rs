//! Memory on Windows.
#![allow(unsafe_code)]

use fallible::PathText;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_READWRITE, VirtualAlloc, VirtualFree,
};

use super::Failure;
pub(crate) use super::errno::Errno;

/// The memory of a log: private memory of this process.
#[derive(Debug)]
pub(crate) struct Backing;

impl Backing {
    pub(crate) fn memory() -> Result<Self, Failure> {
        Ok(Self)
    }

    /// There is no alternative.
    pub(crate) fn instead() -> Option<Self> {
        None
    }

    pub(crate) fn most(&self) -> usize {
        usize::MAX
    }

    /// The size is set when the memory is reserved.
    pub(crate) fn set_size(&self, _: usize) -> Result<(), Errno> {
        Ok(())
    }

    /// There is no reader for a file.
    pub(crate) fn new_file(path: &PathText) -> Result<(Self, PathText), Failure> {
        Err(Failure::at(path.as_path(), Errno::NOT_SUPPORTED))
    }
}

/// Reserves `size` bytes, which must not be accessed yet.
pub(crate) fn map(_: &Backing, size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: new memory, at an address that the system chooses.
    let base = unsafe { VirtualAlloc(ptr::null(), size, MEM_RESERVE, PAGE_READWRITE) };
    NonNull::new(base.cast()).ok_or_else(Errno::last)
}

/// Zeroed memory.
pub(crate) fn zeros(size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: new memory, at an address that the system chooses.
    let base = unsafe { VirtualAlloc(ptr::null(), size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
    NonNull::new(base.cast()).ok_or_else(Errno::last)
}

/// Frees memory.
///
/// # Safety
/// It is exactly what [`map`] or [`zeros`] returned, and is not used any more.
pub(crate) unsafe fn give_back(base: NonNull<u8>, _: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { VirtualFree(base.as_ptr().cast(), 0, MEM_RELEASE) };
}

/// Ensures that whole pages of what [`map`] returned have memory behind them.
///
/// # Safety
/// They are within it.
pub(crate) unsafe fn have(
    _: &Backing,
    base: NonNull<u8>,
    _: usize,
    at: usize,
    length: usize,
) -> Result<(), Errno> {
    // SAFETY: guaranteed by the caller; what is there already stays as it is.
    let there =
        unsafe { VirtualAlloc(base.add(at).as_ptr().cast(), length, MEM_COMMIT, PAGE_READWRITE) };
    if there.is_null() { Err(Errno::last()) } else { Ok(()) }
}

/// There is no fork: a word that stays as it is.
#[derive(Debug)]
pub(crate) struct ForkPage(AtomicU32);

impl ForkPage {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(AtomicU32::new(0)))
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

/// There are no log files on Windows.
pub(crate) fn remove(_: &PathText) {}
