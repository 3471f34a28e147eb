//! The signal handler, and the handlers that were installed before it.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Acquire, Release},
};

use libc::{sigaction, siginfo_t};

use super::worker;

/// Signals that end the process with a core file, and that a process does not send for other reasons.
const CRASHES: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// The previous action for a signal.
struct PreviousAction {
    is_known: AtomicBool,
    action: UnsafeCell<MaybeUninit<sigaction>>,
}

// SAFETY: written once, by the only thread in `watch`, before `is_known` is set; read only after that.
unsafe impl Sync for PreviousAction {}

static PREVIOUS: [PreviousAction; CRASHES.len()] = [const {
    PreviousAction {
        is_known: AtomicBool::new(false),
        action: UnsafeCell::new(MaybeUninit::uninit()),
    }
}; CRASHES.len()];

impl PreviousAction {
    fn get(&self) -> Option<&sigaction> {
        // SAFETY: it has been written, and does not change any more.
        self.is_known.load(Acquire).then(|| unsafe { (*self.action.get()).assume_init_ref() })
    }
}

pub(crate) fn watch() {
    static IS_WATCHING: AtomicBool = AtomicBool::new(false);
    if IS_WATCHING.swap(true, AcqRel) {
        return;
    }
    for (signal, before) in CRASHES.into_iter().zip(&PREVIOUS) {
        let Some(found) = disposition(signal) else { continue };
        if found.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        // SAFETY: only this thread writes, and no other thread reads yet.
        unsafe { (*before.action.get()).write(found) };
        before.is_known.store(true, Release);
        // Keep what the previous handler relies on: the signals that are blocked while it runs, and the restarting of
        // system calls.
        let mut ours = found;
        ours.sa_sigaction = on_signal as *const () as usize;
        ours.sa_flags &= !libc::SA_RESETHAND;
        ours.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `on_signal` is a function of the type that SA_SIGINFO requires, and async-signal-safe.
        unsafe { libc::sigaction(signal, &raw const ours, ptr::null_mut()) };
    }
}

/// The current action of the process for a signal.
fn disposition(signal: c_int) -> Option<sigaction> {
    let mut found = MaybeUninit::uninit();
    // SAFETY: the call fills it when it succeeds.
    unsafe {
        (libc::sigaction(signal, ptr::null(), found.as_mut_ptr()) == 0).then(|| found.assume_init())
    }
}

fn set_default(signal: c_int) {
    // SAFETY: all zero is SIG_DFL, no flags, and no signal blocked.
    unsafe {
        let default: sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, &raw const default, ptr::null_mut());
    }
}

/// Calls only what is async-signal-safe, apart from the previous handler.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: each thread has an `errno`.
    let errno = unsafe { &mut *libc::__errno_location() };
    let was = *errno;
    let place = CRASHES.iter().position(|crash| *crash == signal);
    let before = place.and_then(|place| PREVIOUS.get(place)).and_then(PreviousAction::get);
    match before {
        Some(before) if before.sa_sigaction != libc::SIG_DFL => {
            if before.sa_flags & libc::SA_RESETHAND != 0 {
                set_default(signal);
            }
            // SAFETY: the kernel would have called this handler in the same way, by its own flags.
            unsafe { call(before, signal, info, context) };
            // The handler wants the process to end. If it had continued elsewhere, it would not have returned, or not
            // with SIG_DFL.
            if disposition(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL) {
                worker::run_now();
            }
        }
        _ => {
            worker::run_now();
            set_default(signal);
            // Raise the signal again, with the same information. It is delivered when we return, at the place of the
            // first one. This also works for signals that were sent, and for instructions that would not be repeated. If
            // it fails, a fault recurs by itself.
            // SAFETY: the kernel gave us `info`; a process may send itself any signal.
            unsafe {
                let (pid, tid) = (libc::getpid(), libc::gettid());
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info);
            }
        }
    }
    *errno = was;
}

/// # Safety
/// `action` has a handler, which is called as the kernel would.
unsafe fn call(action: &sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    type PlainHandler = unsafe extern "C" fn(c_int);
    type InfoHandler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    let handler = ptr::with_exposed_provenance::<()>(action.sa_sigaction);
    // SAFETY: the flag tells which of the two types it is.
    unsafe {
        if action.sa_flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<*const (), InfoHandler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<*const (), PlainHandler>(handler)(signal);
        }
    }
}
