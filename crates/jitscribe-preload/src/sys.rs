//! What is asked of the system: by its number, and not through functions that may be ours, or where a thread can be
//! cancelled.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::AtomicU32;

use libc::syscall;

/// What a file is, whatever its name, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) identity: (u64, u64),
    pub(crate) size: u64,
    pub(crate) is_regular: bool,
}

pub(crate) fn thread_id() -> i32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { syscall(libc::SYS_gettid) as i32 }
}

pub(crate) fn process_id() -> i32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { syscall(libc::SYS_getpid) as i32 }
}

pub(crate) fn let_others_run() {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { syscall(libc::SYS_sched_yield) };
}

pub(crate) fn sleep(nanoseconds: c_long) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: the time is there, and what would be left of it is not asked for.
    unsafe { syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null::<libc::timespec>()) };
}

/// Reads at `offset`; 0 where nothing is there, or nothing can be read.
pub(crate) fn read_at(fd: c_int, buffer: &mut [u8], offset: u64) -> usize {
    loop {
        // SAFETY: the kernel writes into the buffer, which is as long as it is told.
        let read = unsafe {
            syscall(libc::SYS_pread64, fd, buffer.as_mut_ptr(), buffer.len(), offset as i64)
        };
        match usize::try_from(read) {
            Ok(read) => return read.min(buffer.len()),
            // SAFETY: a thread's own number.
            Err(_) if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            Err(_) => return 0,
        }
    }
}

pub(crate) fn status(fd: c_int) -> Option<Status> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for what is written.
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

/// Opens the file of a descriptor once more, to be read.
pub(crate) fn open_again(fd: c_int) -> Option<c_int> {
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
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path ends with a NUL, as it is longer than a number can be.
    let opened = unsafe { syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
    let opened = c_int::try_from(opened).ok().filter(|fd| *fd >= 0)?;
    Some(move_away(opened))
}

/// Gives one of our descriptors a number that is out of the way, or the highest that the process's limit allows.
pub(crate) fn move_away(fd: c_int) -> c_int {
    for least in [in_process::high_descriptor(), 200, 10] {
        // SAFETY: it makes a new descriptor and touches no memory.
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
    // SAFETY: it touches no memory; the descriptor is ours.
    unsafe { syscall(libc::SYS_close, fd) };
}

/// Copies memory of the process, this one, which may not be there.
pub(crate) fn copy_memory(process: i32, address: u64, into: &mut [u8]) -> bool {
    let Ok(address) = usize::try_from(address) else { return false };
    let from = libc::iovec {
        iov_base: std::ptr::without_provenance_mut::<c_void>(address),
        iov_len: into.len(),
    };
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: the kernel writes into the buffer, which is as long as it is told, and finds out by itself what can be read.
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

/// A word that is zero in the child of a fork. `None` where the system has none such (before Linux 4.14).
pub(crate) fn word_that_forks_clear() -> Option<&'static AtomicU32> {
    let size = 4096_usize;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, at a place of the kernel's choice.
    let page = unsafe { syscall(libc::SYS_mmap, 0_usize, size, access, flags, -1, 0_usize) };
    let page = usize::try_from(page).ok()?;
    // SAFETY: of the memory just made, and nothing else.
    let advised = unsafe { syscall(libc::SYS_madvise, page, size, libc::MADV_WIPEONFORK) };
    if advised != 0 {
        return None;
    }
    let word = std::ptr::with_exposed_provenance::<AtomicU32>(page);
    // SAFETY: memory of zeros at a page's beginning, which is never given back.
    Some(unsafe { &*word })
}
