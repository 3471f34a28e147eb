//! What there is no safe call for.

use std::os::fd::{AsFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Words that several processes share.
#[derive(Clone, Copy)]
pub struct Shared(&'static [AtomicU64]);

impl Shared {
    /// New ones, all 0, with the descriptor that children inherit.
    pub fn new(words: usize) -> (Self, RawFd) {
        let file = memfd_create("roster", MemfdFlags::empty()).unwrap();
        ftruncate(&file, words as u64 * 8).unwrap();
        let fd = file.into_raw_fd();
        (Self::open(fd, words), fd)
    }

    /// Those of descriptor `fd`, which must be a file of that size.
    pub fn open(fd: RawFd, words: usize) -> Self {
        let (at, size) = (std::ptr::null_mut(), words * 8);
        // SAFETY: the callers own the descriptor, and never close it. A new mapping replaces nothing; the file
        // is as large, and stays so, and it is only used as atomics.
        unsafe {
            let fd = std::os::fd::BorrowedFd::borrow_raw(fd);
            let base = mmap(at, size, READ_WRITE, MapFlags::SHARED, fd.as_fd(), 0).unwrap();
            Self(std::slice::from_raw_parts(base.cast(), words))
        }
    }

    /// New ones that only children of forks share, for as long as the process lives.
    pub fn anonymous(words: usize) -> Self {
        let (at, size) = (std::ptr::null_mut(), words * 8);
        // SAFETY: a new mapping, which replaces nothing, and is only used as atomics.
        unsafe {
            let base = mmap_anonymous(at, size, READ_WRITE, MapFlags::SHARED).unwrap();
            Self(std::slice::from_raw_parts(base.cast(), words))
        }
    }

    /// Waits until the first word is at least this.
    pub fn wait_for(&self, step: u64) {
        while self.word(0).load(SeqCst) < step {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn word(&self, at: usize) -> &'static AtomicU64 {
        &self.0[at]
    }
}

/// Forks: the child's id in the parent, `None` in the child, where no other thread is.
pub fn fork() -> Option<i32> {
    // SAFETY: the child uses what is made for forks: the library under test, and glibc's allocator.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => None,
        pid => Some(pid),
    }
}

/// Ends the process at once, without what its parent prepared for its end.
pub fn exit(code: i32) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}

/// Closes all descriptors but the standard ones, as a daemon does.
pub fn close_all_descriptors() {
    // SAFETY: nothing of this process uses one of them but the library under test.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// Says it without locks, which a thread may hold that is not in this child.
pub fn complain(text: &str) {
    // SAFETY: the bytes are as many.
    let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// Waits for a child of this process.
pub fn wait_for(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is a place for the result.
    unsafe { while libc::waitpid(pid, &raw mut status, 0) < 0 {} }
    status
}

/// From now on these system calls fail with `error`, in this process and whatever becomes of it.
pub fn forbid(calls: &[i64], error: i32) {
    filter(calls, libc::SECCOMP_RET_ERRNO | error as u32 & libc::SECCOMP_RET_DATA);
}

/// From now on this system call kills the process.
pub fn forbid_to_live(call: i64) {
    filter(&[call], libc::SECCOMP_RET_KILL_PROCESS);
}

fn filter(calls: &[i64], answer: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // The number of the call is the first field of what a filter is given.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in calls {
        let equal = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32);
        program.push(libc::sock_filter { jf: 1, ..equal });
        program.push(statement(libc::BPF_RET | libc::BPF_K, answer));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program has the given length, and lives until the kernel has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

/// Runs `action` in a process that shares this one's memory, as between vfork and exec, and waits for its end.
pub fn in_vfork_child(action: extern "C" fn(*mut libc::c_void) -> libc::c_int) {
    let mut stack = vec![0_u128; 64 << 10];
    // SAFETY: the child has a stack of its own, this thread waits until it has ended, and `action` comes back.
    unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(action, top, flags, std::ptr::null_mut());
        assert!(pid > 0, "{}", std::io::Error::last_os_error());
        wait_for(pid);
    }
}

/// Has `handler` called every so many microseconds of the clock; 0: no more.
pub fn begin_alarms(handler: extern "C" fn(libc::c_int), microseconds: i64) {
    // SAFETY: the handler calls what this test is about, and what is made for handlers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        let time = libc::timeval { tv_sec: 0, tv_usec: microseconds };
        let timer = libc::itimerval { it_interval: time, it_value: time };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

static FAILED: AtomicU64 = AtomicU64::new(0);

/// Takes note of children that have ended.
pub fn reap() {
    wait_any(libc::WNOHANG);
}

fn wait_any(flags: i32) {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a place for the result.
        match unsafe { libc::waitpid(-1, &raw mut status, flags) } {
            1.. => {
                FAILED.fetch_add(u64::from(status != 0), std::sync::atomic::Ordering::Relaxed);
            }
            _ => return,
        }
    }
}

/// Waits for all children, and returns how many failed, and how many there were.
pub fn failed_children() -> u64 {
    wait_any(0);
    FAILED.load(std::sync::atomic::Ordering::Relaxed)
}

/// All threads of this process run on one processor from now on.
pub fn stay_on_one_processor() {
    // SAFETY: the set has the given size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| libc::CPU_ISSET(*cpu, &set));
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first.unwrap_or(0), &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// This thread goes before all ordinary ones, if it may.
pub fn become_real_time() -> bool {
    let priority = libc::sched_param { sched_priority: 10 };
    // SAFETY: it reads the parameter.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) == 0 }
}

/// Waits for a child: its status, and how many pages the kernel made for it.
pub fn faults_of(child: std::process::Child) -> (i32, i64) {
    let mut status = 0;
    // SAFETY: both are places for results.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage);
        (status, usage.ru_minflt)
    }
}

/// A context as an OpenTelemetry SDK publishes it, without looking for others.
pub struct ForeignContext {
    page: *mut u8,
    /// Payloads live as long as the process.
    last: std::cell::Cell<u64>,
}

impl ForeignContext {
    const SIZE: usize = 4096;

    pub fn publish(payload: &[u8]) -> Self {
        let file =
            memfd_create("OTEL_CTX", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, Self::SIZE as u64).unwrap();
        let (at, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE);
        // SAFETY: a new mapping, which replaces nothing.
        let page = unsafe { mmap(at, Self::SIZE, READ_WRITE, flags, &file, 0) }.unwrap();
        let context = Self { page: page.cast(), last: 0.into() };
        // SAFETY: within the page; the page is no child's.
        unsafe {
            assert_eq!(libc::madvise(page, Self::SIZE, libc::MADV_DONTFORK), 0);
            context.page.cast::<[u8; 8]>().write_volatile(*b"OTEL_CTX");
            context.page.add(8).cast::<u32>().write_volatile(2);
        }
        context.update(payload);
        context
    }

    pub fn update(&self, payload: &[u8]) {
        let barrier = || std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let payload: &'static [u8] = payload.to_vec().leak();
        self.last.set(self.last.get() + 1);
        // SAFETY: within the page, at multiples of the sizes.
        unsafe {
            self.page.add(16).cast::<u64>().write_volatile(0);
            barrier();
            self.page.add(12).cast::<u32>().write_volatile(payload.len() as u32);
            self.page
                .add(24)
                .cast::<u64>()
                .write_volatile(payload.as_ptr().expose_provenance() as u64);
            barrier();
            self.page.add(16).cast::<u64>().write_volatile(self.last.get());
        }
        name_memory(self.page, Self::SIZE);
    }

    pub fn withdraw(self) {
        // SAFETY: it was mapped with this size, and nothing uses it afterwards.
        assert_eq!(unsafe { libc::munmap(self.page.cast(), Self::SIZE) }, 0);
    }
}

fn name_memory(at: *mut u8, size: usize) -> bool {
    const PR_SET_VMA: libc::c_int = 0x53564d41;
    let name = c"OTEL_CTX";
    // SAFETY: it gives a name to memory of the caller.
    unsafe { libc::prctl(PR_SET_VMA, 0, at, size, name.as_ptr()) == 0 }
}

/// Whether the kernel supports names for anonymous memory.
pub fn can_name_memory() -> bool {
    let (at, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE);
    // SAFETY: a new mapping, which is unmapped again.
    unsafe {
        let page = mmap_anonymous(at, 4096, ProtFlags::READ, flags).unwrap();
        let can = name_memory(page.cast(), 4096);
        rustix::mm::munmap(page, 4096).unwrap();
        can
    }
}

/// This process's parent traces it from now on, and finds it stopped.
pub fn stop_to_be_traced() {
    // SAFETY: it has no other effect on this process.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) }, 0);
    stop_here();
}

/// The tracer finds this process stopped.
pub fn stop_here() {
    // SAFETY: the signal stops this process.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Waits until a traced process has stopped by [`stop_to_be_traced`].
pub fn wait_until_stopped(pid: u32) {
    let status = wait_for(pid as i32);
    assert!(libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGSTOP, "{status:#x}");
}

/// Has a traced process execute one instruction.
pub fn step(pid: u32) {
    let signal = resume(pid, libc::PTRACE_SINGLESTEP);
    assert_eq!(signal, libc::SIGTRAP);
}

/// Runs a traced process until it [stops itself](stop_here).
pub fn run_until_stopped(pid: u32) {
    while resume(pid, libc::PTRACE_CONT) != libc::SIGSTOP {}
}

/// Runs a traced process until it enters this system call, or has entered `most` calls and left the last one. Returns how many
/// calls it has entered.
pub fn run_to_call(pid: u32, call: i64, most: usize) -> usize {
    let options = libc::PTRACE_O_TRACESYSGOOD;
    // SAFETY: it affects the traced process alone.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) }, 0);
    let mut count = 0;
    loop {
        assert_eq!(resume(pid, libc::PTRACE_SYSCALL), libc::SIGTRAP | 0x80);
        // SAFETY: the kernel writes at most the given size.
        let info = unsafe {
            let mut info: libc::ptrace_syscall_info = std::mem::zeroed();
            let size = size_of_val(&info);
            assert!(libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, &raw mut info) > 0);
            info
        };
        if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
            count += 1;
            // SAFETY: the field that belongs to this kind.
            if unsafe { info.u.entry.nr } == call as u64 {
                return count;
            }
        } else if count >= most {
            return count;
        }
    }
}

/// Resumes a traced process, and returns the signal by which it stops.
fn resume(pid: u32, how: libc::c_uint) -> i32 {
    // SAFETY: it affects the traced process alone.
    let done = unsafe { libc::ptrace(how, pid, 0, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let status = wait_for(pid as i32);
    assert!(libc::WIFSTOPPED(status), "{status:#x}");
    libc::WSTOPSIG(status)
}
