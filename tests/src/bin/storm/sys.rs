//! What there is no safe call for.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

/// Words that all processes of the storm share.
#[derive(Clone, Copy)]
pub struct Shared(&'static [AtomicU64]);

impl Shared {
    /// New ones, all 0, with the descriptor that programs inherit.
    pub fn new(words: usize) -> (Self, RawFd) {
        let file = memfd_create("storm-truth", MemfdFlags::empty()).expect("memory");
        ftruncate(&file, words as u64 * 8).expect("memory");
        let fd = file.into_raw_fd();
        (Self::open(fd, words), fd)
    }

    /// Those of a descriptor that `new` made, in this program or in its parent.
    pub fn open(fd: RawFd, words: usize) -> Self {
        // SAFETY: the descriptor is never closed. A new mapping replaces nothing; the file is as large, nobody shrinks it,
        // and it is only used as atomics.
        unsafe {
            let fd = BorrowedFd::borrow_raw(fd);
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let base =
                mmap(std::ptr::null_mut(), words * 8, access, MapFlags::SHARED, fd.as_fd(), 0)
                    .expect("a mapping");
            Self(std::slice::from_raw_parts(base.cast(), words))
        }
    }

    pub fn word(&self, at: usize) -> &'static AtomicU64 {
        &self.0[at]
    }
}

/// Memory for code, which a fork's child has at the same place.
#[derive(Clone, Copy)]
pub struct Memory {
    base: *mut u8,
    size: usize,
}

// SAFETY: each thread writes into parts of its own.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(size: usize) -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which replaces nothing.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size, access, MapFlags::PRIVATE).expect("memory")
        };
        Self { base: base.cast(), size }
    }

    pub fn address(&self) -> u64 {
        self.base.addr() as u64
    }

    /// Writes bytes to a place, and returns them as they are stored.
    pub fn write(&self, at: usize, bytes: &[u8]) -> &[u8] {
        assert!(at + bytes.len() <= self.size);
        // SAFETY: within the mapping, as was checked; only the thread whose place this is has anything of it.
        unsafe {
            let to = self.base.add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            std::slice::from_raw_parts(to, bytes.len())
        }
    }
}

/// How a process makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The C library's, which calls the fork handlers.
    Library,
    /// The system call, which calls no handlers.
    Clone3,
}

/// Forks: the child's id in the parent, `None` in the child.
pub fn fork(how: Fork) -> Option<i32> {
    let pid = match how {
        // SAFETY: the child uses what is made for forks: the library under test, atomics and memory that is there.
        Fork::Library => unsafe { libc::fork() },
        Fork::Clone3 => {
            // `struct clone_args`, of which all but the signal is 0.
            let mut arguments = [0_u64; 11];
            arguments[4] = libc::SIGCHLD as u64;
            let size = size_of_val(&arguments);
            // SAFETY: as above; the arguments have the given size.
            unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size) as i32 }
        }
    };
    match pid {
        ..0 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => None,
        pid => Some(pid),
    }
}

/// Runs `action` in a process that shares this one's memory, and waits for its end. With `vfork`, this thread stands still
/// meanwhile.
pub fn in_clone_with_our_memory(
    vfork: bool,
    action: extern "C" fn(*mut libc::c_void) -> i32,
    with: *mut libc::c_void,
) {
    let mut stack = vec![0_u128; 16 << 10];
    // SAFETY: the child has a stack of its own, which lives until it has ended, and `action` comes back.
    unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        let also = if vfork { libc::CLONE_VFORK } else { 0 };
        let flags = libc::CLONE_VM | also | libc::SIGCHLD;
        let pid = libc::clone(action, top, flags, with);
        assert!(pid > 0, "{}", std::io::Error::last_os_error());
        let mut status = 0;
        while libc::waitpid(pid, &raw mut status, 0) < 0 {}
    }
}

/// What a forbidden system call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Error(i32),
    Kill,
}

/// From now on this system call is refused, in this process and whatever becomes of it.
pub fn forbid(call: i64, how: Refusal) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let equal = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32);
    let refuse = match how {
        Refusal::Error(error) => libc::SECCOMP_RET_ERRNO | error as u32 & libc::SECCOMP_RET_DATA,
        Refusal::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    };
    let mut program = [
        // The number of the call is the first field of what a filter is given.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter { jf: 1, ..equal },
        statement(libc::BPF_RET | libc::BPF_K, refuse),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program has the given length, and lives until the kernel has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

/// Sets a limit of this process.
pub fn limit(what: u32, to: u64) {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: the limit lives until the kernel has read it.
    assert_eq!(unsafe { libc::setrlimit(what, &raw const limit) }, 0, "setrlimit");
}

/// Becomes another user, to whom limits apply.
pub fn become_nobody() {
    // SAFETY: no other thread is there yet.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setresuid(65_534, 65_534, 65_534), 0);
            // Otherwise no process of this user could be inspected.
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        }
    }
}

/// Has the children of children that end become ours, so that we learn how they ended.
pub fn adopt_orphans() {
    // SAFETY: it only sets a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Is killed when its parent ends.
pub fn end_with_parent() {
    // SAFETY: it only sets a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
}

/// Stands still until a signal ends it.
pub fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: it only waits.
        unsafe { libc::pause() };
    }
}

pub fn pid() -> u64 {
    u64::from(std::process::id())
}

pub fn send(pid: i32, signal: i32) {
    // SAFETY: it is a process of ours that was not waited for, so that no other has its number.
    unsafe { libc::kill(pid, signal) };
}

/// Reaps children of children that have ended, and says whether others are left. No other thread may wait for a child of this process at the same time.
pub fn forget_orphans() -> bool {
    loop {
        // SAFETY: nothing is written.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            _ => {}
        }
    }
}

/// Takes away what [`mount_small`] mounted.
pub fn unmount(path: &std::ffi::CStr) {
    // SAFETY: the string ends with a NUL.
    unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
}

/// A mount namespace of our own, in which nothing reaches the others; whether there can be one.
pub fn own_mounts() -> bool {
    // SAFETY: the strings end with NULs; no other thread is there yet.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                std::ptr::null(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
    }
}

/// Mounts a small tmpfs.
pub fn mount_small(path: &std::ffi::CStr, options: &std::ffi::CStr) -> bool {
    let kind = c"tmpfs".as_ptr();
    // SAFETY: the strings end with NULs.
    unsafe { libc::mount(kind, path.as_ptr(), kind, 0, options.as_ptr().cast()) == 0 }
}
