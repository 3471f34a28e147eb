//! The thread that does the work, and how it is asked to.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::io;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::PATIENCE;

pub(crate) type Work = Box<dyn Fn() + Send + Sync>;

/// Something to do, and what was given before it. Never freed, as a crash may come at any time.
struct Item {
    work: Work,
    next: *const Item,
}

static ITEMS: AtomicPtr<Item> = AtomicPtr::new(ptr::null_mut());
/// Of the process that made the thread; in a fork's child, another than its own.
static PID: AtomicU32 = AtomicU32::new(0);
/// The thread, once it runs.
static TID: AtomicU32 = AtomicU32::new(0);
/// Counts how often the work was asked for, and which of these times is done.
static ASKED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

pub(crate) fn prepare(work: Work) -> io::Result<()> {
    let item = Box::leak(Box::new(Item { work, next: ptr::null() }));
    let mut first = ITEMS.load(Relaxed);
    loop {
        item.next = first;
        match ITEMS.compare_exchange(first, ptr::from_mut(item), Release, Relaxed) {
            Ok(_) => return begin(),
            Err(now) => first = now,
        }
    }
}

/// Makes the thread, if this process has none and there is something to do.
pub(crate) fn begin() -> io::Result<()> {
    let pid = std::process::id();
    if ITEMS.load(Acquire).is_null() || PID.swap(pid, AcqRel) == pid {
        return Ok(());
    }
    // What was asked of the parent is no matter of its child.
    TID.store(0, Relaxed);
    DONE.store(ASKED.load(Relaxed), Relaxed);
    let spawned = in_process::spawn("jitscribe-crash", || run());
    spawned.map(drop).inspect_err(|_| PID.store(0, Release))
}

fn run() -> ! {
    // An allocator that has memory for each thread finds some now.
    drop(black_box(vec![0_u8; 64]));
    // SAFETY: it takes nothing and cannot fail.
    TID.store(unsafe { libc::gettid() }.unsigned_abs(), Release);
    loop {
        let asked = ASKED.load(Acquire);
        if asked == DONE.load(Relaxed) {
            wait(&ASKED, asked, None);
            continue;
        }
        let mut item = ITEMS.load(Acquire).cast_const();
        // SAFETY: items are never freed, nor changed once they are in the list.
        while let Some(Item { work, next }) = unsafe { item.as_ref() } {
            work();
            item = *next;
        }
        DONE.store(asked, Release);
        wake(&DONE);
    }
}

/// Everything in here is safe in a signal handler: atomics, and system calls that take no lock of the process.
pub(crate) fn tell() -> bool {
    // SAFETY: they take nothing and cannot fail.
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
    // SAFETY: it writes the time to where it is told to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// Waits until someone wakes us, the time in nanoseconds is over, or the word is another than `value`.
fn wait(word: &AtomicU32, value: u32, time: Option<i64>) {
    let time = time.map(|nanos| libc::timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is a static, and the time lives for the call or is NULL, which is none.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            time,
        );
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
