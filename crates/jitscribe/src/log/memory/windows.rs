//! Windows.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_READWRITE, VirtualAlloc, VirtualFree,
};

use super::Failure;

/// A system error's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(i32);

impl Errno {
    /// `ERROR_NOT_ENOUGH_MEMORY`.
    pub(crate) const NOMEM: Self = Self(8);
    /// `ERROR_NOT_SUPPORTED`.
    const NOT_SUPPORTED: Self = Self(50);

    fn last() -> Self {
        io::Error::last_os_error().raw_os_error().map_or(Self::NOMEM, Self)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// What the log lies in: memory of this process.
#[derive(Debug)]
pub(crate) struct Backing;

impl Backing {
    pub(crate) fn memory() -> Result<Self, Failure> {
        Ok(Self)
    }

    /// There is no other.
    pub(crate) fn instead() -> Option<Self> {
        None
    }

    /// Nobody would read it.
    pub(crate) fn file(path: &Path) -> Result<Self, Failure> {
        Err(Failure { what: path.display().to_string(), cause: Errno::NOT_SUPPORTED })
    }
}

/// Reserves `size` bytes, of which none may be touched yet.
pub(crate) fn map(_: &Backing, size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: new memory, at an address of the system's choice.
    let base = unsafe { VirtualAlloc(ptr::null(), size, MEM_RESERVE, PAGE_READWRITE) };
    NonNull::new(base.cast()).ok_or_else(Errno::last)
}

/// Memory of zeros.
pub(crate) fn zeros(size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: new memory, at an address of the system's choice.
    let base = unsafe { VirtualAlloc(ptr::null(), size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
    NonNull::new(base.cast()).ok_or_else(Errno::last)
}

/// Gives memory back.
///
/// # Safety
/// It is all that [`map`] or [`zeros`] gave, and nobody uses it.
pub(crate) unsafe fn give_back(base: NonNull<u8>, _: usize) {
    // SAFETY: the caller's promise.
    unsafe { VirtualFree(base.as_ptr().cast(), 0, MEM_RELEASE) };
}

/// Sees to it that there is memory behind whole pages of what [`map`] gave.
///
/// # Safety
/// They lie in it.
pub(crate) unsafe fn have(
    _: &Backing,
    base: NonNull<u8>,
    at: usize,
    length: usize,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise; what is there already stays as it is.
    let there =
        unsafe { VirtualAlloc(base.add(at).as_ptr().cast(), length, MEM_COMMIT, PAGE_READWRITE) };
    if there.is_null() { Err(Errno::last()) } else { Ok(()) }
}

/// It is made when it is touched, and there for sure.
///
/// # Safety
/// As for [`have`].
pub(crate) unsafe fn populate(_: NonNull<u8>, _: usize, _: usize) -> Result<(), Errno> {
    Ok(())
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
