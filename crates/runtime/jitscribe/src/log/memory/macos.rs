//! Memory on macOS.
//!
//! A log in memory is private to the process, as no reader there looks into other processes. A log in a file is a jitdump, which samply
//! reads. There is no memfd, no `fallocate` and no way to allocate the pages of a mapping.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use fallible::PathText;
use guest::OwnFile;
pub(crate) use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::Failure;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// The memory of a log.
#[derive(Debug)]
pub(crate) enum Backing {
    /// Private memory of this process. The child of a fork has a copy, which it does not use.
    Memory,
    /// A file and its path.
    File(OwnFile, PathText),
}

impl Backing {
    pub(crate) fn memory() -> Result<Self, Failure> {
        Ok(Self::Memory)
    }

    /// There is no alternative.
    pub(crate) fn instead() -> Option<Self> {
        None
    }

    pub(crate) fn most(&self) -> usize {
        usize::MAX
    }

    /// A file grows with its content.
    pub(crate) fn set_size(&self, _: usize) -> Result<(), Errno> {
        Ok(())
    }

    /// Creates a new file that only this user can access, without following links or replacing a file.
    ///
    /// By `open` of the C library: samply has each program call its own `open`, which tells samply of paths that contain `jit-` and end with
    /// `.dump`. It does not replace `openat`.
    pub(crate) fn new_file(path: &PathText) -> Result<(Self, PathText), Failure> {
        let copy = || PathText::new(path).ok_or(Failure::memory("a path for the code log"));
        let (own, returned) = (copy()?, copy()?);
        let failure = |cause| Failure::at(path.as_path(), cause);
        let flags =
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the path ends with a NUL. With O_CREAT, the third argument is the mode, which C passes as an int.
        let number = unsafe { libc::open(path.as_c_str().as_ptr(), flags, 0o600 as libc::c_int) };
        if number < 0 {
            let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            return Err(failure(Errno::from_raw_os_error(error)));
        }
        // SAFETY: it is a new descriptor, which nobody else owns.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        let file = OwnFile::new(file).inspect_err(|_| remove(path)).map_err(failure)?;
        Ok((Self::File(file, own), returned))
    }

    /// The path of the file, if it is one.
    pub(crate) fn path(&self) -> Option<PathText> {
        match self {
            Self::File(_, path) => PathText::new(path),
            Self::Memory => None,
        }
    }

    /// Ensures that the first `end` bytes of a file have disk space: a store to a mapping without it raises a signal.
    fn grow(file: BorrowedFd<'_>, end: usize) -> Result<(), Errno> {
        if guest::file_size_limit().is_some_and(|limit| end as u64 > limit) {
            return Err(Errno::FBIG);
        }
        let size = rustix::fs::fstat(file)?.st_size.unsigned_abs();
        let Some(missing) = (end as u64).checked_sub(size).filter(|missing| *missing != 0) else {
            return Ok(());
        };
        // From the physical end of the file on, which is its size: this file grows by nothing else.
        let mut request = libc::fstore_t {
            fst_flags: libc::F_ALLOCATEALL,
            fst_posmode: libc::F_PEOFPOSMODE,
            fst_offset: 0,
            fst_length: missing.cast_signed(),
            fst_bytesalloc: 0,
        };
        // SAFETY: it reads and writes the structure, which lives during the call.
        let answer =
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut request) };
        if answer == -1 {
            let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            return Err(Errno::from_raw_os_error(error));
        }
        rustix::fs::ftruncate(file, end as u64)
    }
}

/// Maps `size` bytes of a backing. What is behind the end of a file must not be accessed yet.
pub(crate) fn map(backing: &Backing, size: usize) -> Result<NonNull<u8>, Errno> {
    let base = match backing {
        // SAFETY: a new mapping at an address that the system chooses replaces nothing.
        Backing::Memory => unsafe {
            mmap_anonymous(ptr::null_mut(), size, READ_WRITE, MapFlags::PRIVATE)
        },
        Backing::File(file, _) => {
            let file = file.get().ok_or(Errno::BADF)?;
            // SAFETY: as above.
            unsafe { mmap(ptr::null_mut(), size, READ_WRITE, MapFlags::SHARED, file, 0) }
        }
    }?;
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// Zeroed private memory.
pub(crate) fn zeros(size: usize) -> Result<NonNull<u8>, Errno> {
    map(&Backing::Memory, size)
}

/// Unmaps memory.
///
/// # Safety
/// It is exactly what [`map`] or [`zeros`] returned, and is not used any more.
pub(crate) unsafe fn give_back(base: NonNull<u8>, size: usize) {
    // SAFETY: guaranteed by the caller.
    let _ = unsafe { munmap(base.as_ptr().cast(), size) };
}

/// Ensures that whole pages of what [`map`] returned have disk space behind them, if they are of a file.
///
/// # Safety
/// They are within it.
pub(crate) unsafe fn have(
    backing: &Backing,
    _: NonNull<u8>,
    _: usize,
    at: usize,
    length: usize,
) -> Result<(), Errno> {
    let Backing::File(file, path) = backing else { return Ok(()) };
    let end = at.checked_add(length).ok_or(Errno::FBIG)?;
    match file.get() {
        Some(file) => Backing::grow(file, end),
        // The program has closed the descriptor.
        None => {
            let file = file.open_at(path.as_c_str()).ok_or(Errno::BADF)?;
            Backing::grow(file.as_fd(), end)
        }
    }
}

/// A word that is cleared in the child of a fork: by a handler, as the system clears no memory.
#[derive(Debug)]
pub(crate) struct ForkPage(&'static ForkWord);

/// The words are a list, which only grows: a scribe is never freed.
#[derive(Debug)]
struct ForkWord {
    word: AtomicU32,
    next: *const ForkWord,
}

// SAFETY: the pointer is never changed once the word is in the list, and what it points to is never freed.
unsafe impl Send for ForkWord {}
// SAFETY: as above.
unsafe impl Sync for ForkWord {}

static WORDS: AtomicPtr<ForkWord> = AtomicPtr::new(ptr::null_mut());

extern "C" fn clear_words() {
    let mut next = WORDS.load(Acquire).cast_const();
    // SAFETY: what is in the list is never freed or moved.
    while let Some(found) = unsafe { next.as_ref() } {
        found.word.store(0, Relaxed);
        next = found.next;
    }
}

impl ForkPage {
    pub(crate) fn new() -> Result<Self, Errno> {
        static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
        if !IS_REGISTERED.swap(true, Relaxed) {
            // SAFETY: the handler takes no locks and allocates nothing. It is code of this library, which is never unloaded: it has
            // thread-local data.
            let error = unsafe { libc::pthread_atfork(None, None, Some(clear_words)) };
            if error != 0 {
                IS_REGISTERED.store(false, Relaxed);
                return Err(Errno::from_raw_os_error(error));
            }
        }
        let made = ForkWord { word: AtomicU32::new(0), next: ptr::null() };
        let made = Box::leak(fallible::boxed(made).map_err(|_| Errno::NOMEM)?);
        loop {
            let first = WORDS.load(Acquire);
            made.next = first;
            let own: *mut ForkWord = made;
            if WORDS.compare_exchange(first, own, Release, Relaxed).is_ok() {
                // SAFETY: it was leaked above, and from now on is only read, but for its atomic word.
                return Ok(Self(unsafe { &*own }));
            }
        }
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0.word
    }
}

/// Removes a file that could not be used.
pub(crate) fn remove(path: &PathText) {
    let _ = rustix::fs::unlink(path.as_c_str());
}
