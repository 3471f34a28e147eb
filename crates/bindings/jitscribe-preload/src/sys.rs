//! System calls, by number: the C library's functions may be interposed here, or be cancellation points.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::sync::atomic::AtomicU32;

use libc::syscall;

/// The identity of a file, independent of its name, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) identity: (u64, u64),
    pub(crate) size: u64,
    pub(crate) is_regular: bool,
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { syscall(libc::SYS_gettid) as u32 }
}

pub(crate) fn process_id() -> i32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { syscall(libc::SYS_getpid) as i32 }
}

pub(crate) fn yield_now() {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { syscall(libc::SYS_sched_yield) };
}

pub(crate) fn sleep(nanoseconds: c_long) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: the time is valid, and the remaining time is not requested.
    unsafe { syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null::<libc::timespec>()) };
}

/// Reads at `offset`. Returns 0 if nothing is there, or nothing can be read.
pub(crate) fn read_at(fd: c_int, buffer: &mut [u8], offset: u64) -> usize {
    loop {
        // SAFETY: the kernel writes into the buffer, which has the given size.
        let read = unsafe {
            syscall(libc::SYS_pread64, fd, buffer.as_mut_ptr(), buffer.len(), offset as i64)
        };
        match usize::try_from(read) {
            Ok(read) => return read.min(buffer.len()),
            // SAFETY: `errno` of this thread.
            Err(_) if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            Err(_) => return 0,
        }
    }
}

pub(crate) fn status(fd: c_int) -> Option<Status> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is space for what is written.
    let done = unsafe { libc::fstat(fd, status.as_mut_ptr()) };
    if done != 0 {
        return None;
    }
    // SAFETY: it was written.
    let status = unsafe { status.assume_init() };
    Some(Status {
        identity: (status.st_dev, status.st_ino),
        size: u64::try_from(status.st_size).unwrap_or(0),
        is_regular: status.st_mode & libc::S_IFMT == libc::S_IFREG,
    })
}

/// Opens the file of a descriptor again, for reading.
pub(crate) fn reopen(fd: c_int) -> Option<c_int> {
    let path = link_of(fd)?;
    open(CStr::from_bytes_until_nul(&path).ok()?, libc::O_RDONLY).map(move_to_high_number)
}

/// Opens a file for reading.
pub(crate) fn open_to_read(path: &CStr) -> Option<c_int> {
    open(path, libc::O_RDONLY)
}

/// Opens a file for appending.
pub(crate) fn open_to_append(path: &CStr) -> Option<c_int> {
    open(path, libc::O_WRONLY | libc::O_APPEND)
}

fn open(path: &CStr, flags: c_int) -> Option<c_int> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path is NUL-terminated.
    let opened = unsafe { syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
    c_int::try_from(opened).ok().filter(|fd| *fd >= 0)
}

/// Writes to one of our descriptors, with one call.
pub(crate) fn write(fd: c_int, bytes: &[u8]) {
    // SAFETY: the kernel reads the bytes, whose number is given.
    unsafe { syscall(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) };
}

/// Reads the path of a descriptor's file into `buffer`, and returns its length. `None` if there is none, or not enough space
/// for it and one more byte.
pub(crate) fn path_of(fd: c_int, buffer: &mut [u8]) -> Option<usize> {
    let link = link_of(fd)?;
    // SAFETY: the path is NUL-terminated, and the kernel writes into the buffer, which has the given size.
    let length = unsafe {
        let (path, buffer, size) = (link.as_ptr(), buffer.as_mut_ptr(), buffer.len());
        syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path, buffer, size)
    };
    usize::try_from(length).ok().filter(|length| *length < buffer.len())
}

/// The path under which the kernel shows the file of a descriptor. NUL-terminated: there is space for more than the
/// largest number.
fn link_of(fd: c_int) -> Option<[u8; 26]> {
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0_u8; 10];
    let mut rest = u32::try_from(fd).ok()?;
    let mut count = 0;
    loop {
        *digits.get_mut(count)? = b'0' + (rest % 10) as u8;
        count += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    for (place, digit) in path[14..].iter_mut().zip(digits[..count].iter().rev()) {
        *place = *digit;
    }
    Some(path)
}

/// Calls `read` with the value of an environment variable, if it is set.
pub(crate) fn variable<R>(name: &CStr, read: impl FnOnce(&CStr) -> R) -> Option<R> {
    // SAFETY: the name and the value are NUL-terminated. As everyone who reads the environment does, this relies on the
    // program not to change it on another thread.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| read(CStr::from_ptr(value)))
    }
}

/// Moves one of our descriptors to a high number, or the highest that the process's limit allows.
pub(crate) fn move_to_high_number(fd: c_int) -> c_int {
    for least in [::guest::high_descriptor(), 200, 10] {
        // SAFETY: it makes a new descriptor, and accesses no memory.
        let moved = unsafe { syscall(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, least) };
        if moved >= 0 {
            close(fd);
            return moved as c_int;
        }
    }
    fd
}

/// Closes one of our descriptors.
pub(crate) fn close(fd: c_int) {
    // SAFETY: it accesses no memory; the descriptor is ours.
    unsafe { syscall(libc::SYS_close, fd) };
}

/// Copies memory of this process that may not be readable.
pub(crate) fn copy_memory(process: i32, address: u64, into: &mut [u8]) -> bool {
    let Ok(address) = usize::try_from(address) else { return false };
    let from = libc::iovec {
        iov_base: std::ptr::without_provenance_mut::<c_void>(address),
        iov_len: into.len(),
    };
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: the kernel writes into the buffer, which has the given size, and itself checks what can be read.
    let copied = unsafe {
        syscall(
            libc::SYS_process_vm_readv,
            process,
            &raw const to,
            1_usize,
            &raw const from,
            1_usize,
            0_usize,
        )
    };
    usize::try_from(copied) == Ok(into.len())
}

/// A word that is zero in the child of a fork. `None` if the system does not support this (before Linux 4.14).
pub(crate) fn wipe_on_fork_word() -> Option<&'static AtomicU32> {
    let size = 4096_usize;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, at an address that the kernel chooses.
    let page = unsafe { syscall(libc::SYS_mmap, 0_usize, size, access, flags, -1, 0_usize) };
    let page = usize::try_from(page).ok()?;
    // SAFETY: only the memory just mapped.
    let advised = unsafe { syscall(libc::SYS_madvise, page, size, libc::MADV_WIPEONFORK) };
    if advised != 0 {
        return None;
    }
    let word = std::ptr::with_exposed_provenance::<AtomicU32>(page);
    // SAFETY: zeroed memory at the beginning of a page, which is never unmapped.
    Some(unsafe { &*word })
}
