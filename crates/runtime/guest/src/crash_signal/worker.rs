//! The thread that runs the work, and the requests to it.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::io;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::time::Duration;

/// The maximum time that a crash waits for the work.
pub const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) type Work = Box<dyn Fn() + Send + Sync>;

/// A piece of work, and the one that was added before it. Never freed, because a crash may happen at any time.
struct Item {
    work: Work,
    next: *const Item,
}

static ITEMS: AtomicPtr<Item> = AtomicPtr::new(ptr::null_mut());
/// The process that created the thread. In the child of a fork, this is not its own pid.
static PID: AtomicU32 = AtomicU32::new(0);
/// The thread's id, once it runs.
static TID: AtomicU32 = AtomicU32::new(0);
/// The number of requests, and the number of the last one that is done.
static ASKED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

pub(crate) fn prepare(work: Work) -> io::Result<()> {
    let item = fallible::leaked(Item { work, next: ptr::null() })
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut first = ITEMS.load(Relaxed);
    loop {
        item.next = first;
        match ITEMS.compare_exchange(first, ptr::from_mut(item), Release, Relaxed) {
            Ok(_) => return begin(),
            Err(now) => first = now,
        }
    }
}

/// Creates the thread, if this process has none and there is work.
pub(crate) fn begin() -> io::Result<()> {
    let pid = std::process::id();
    if ITEMS.load(Acquire).is_null() || PID.swap(pid, AcqRel) == pid {
        return Ok(());
    }
    // Requests in the parent do not concern the child.
    TID.store(0, Relaxed);
    DONE.store(ASKED.load(Relaxed), Relaxed);
    let spawned = crate::spawn("jitscribe-crash", || run());
    spawned.inspect_err(|_| PID.store(0, Release))
}

fn run() -> ! {
    // Makes the allocator set up its per-thread memory now.
    drop(black_box(fallible::attempt(|| fallible::vec![0_u8; 64])));
    // SAFETY: it has no arguments, and cannot fail.
    TID.store(unsafe { libc::gettid() }.unsigned_abs(), Release);
    loop {
        let asked = ASKED.load(Acquire);
        if asked == DONE.load(Relaxed) {
            wait(&ASKED, asked, None);
            continue;
        }
        let mut item = ITEMS.load(Acquire).cast_const();
        // SAFETY: items are never freed, and do not change once they are in the list.
        while let Some(Item { work, next }) = unsafe { item.as_ref() } {
            work();
            item = *next;
        }
        DONE.store(asked, Release);
        wake(&DONE);
    }
}

/// Everything here is async-signal-safe: atomics, and system calls that take no lock of the process.
pub(crate) fn run_now() -> bool {
    // SAFETY: they have no arguments, and cannot fail.
    let (pid, tid) = unsafe { (libc::getpid(), libc::gettid()) };
    if PID.load(Acquire) != pid.unsigned_abs() || TID.load(Acquire) == tid.unsigned_abs() {
        return false;
    }
    let mine = ASKED.fetch_add(1, AcqRel).wrapping_add(1);
    wake(&ASKED);
    let deadline = now().saturating_add(PATIENCE.as_nanos() as i64);
    loop {
        let done = DONE.load(Acquire);
        if done.wrapping_sub(mine) as i32 >= 0 {
            return true;
        }
        let left = deadline.saturating_sub(now());
        if left <= 0 {
            return false;
        }
        wait(&DONE, done, Some(left));
    }
}

/// Nanoseconds of the monotonic clock.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time to the given place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// Waits until it is woken, the time in nanoseconds is over, or the word differs from `value`.
fn wait(word: &AtomicU32, value: u32, time: Option<i64>) {
    // The interval for polling if the system does not allow waiting: a crash must not be delayed.
    let pause = if time.is_some() { Duration::from_millis(10) } else { Duration::from_secs(1) };
    let time = time.map(|nanos| libc::timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is a static, and the time lives during the call or is NULL, which means none.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            time,
        )
    };
    if answer == -1 {
        let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        crate::sleep_if_refused(error, pause);
    }
}

fn wake(word: &AtomicU32) {
    // SAFETY: the word is a static.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}
