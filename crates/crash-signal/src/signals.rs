//! The handler, and those that were there before it.
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

/// Those of which the process dies with a core, and that it does not send for other reasons.
const CRASHES: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// What was done for a signal before we came.
struct Before {
    is_known: AtomicBool,
    action: UnsafeCell<MaybeUninit<sigaction>>,
}

// SAFETY: written once, by the one thread that is in `watch`, before `is_known` is set; read only once that is.
unsafe impl Sync for Before {}

static BEFORE: [Before; CRASHES.len()] = [const {
    Before { is_known: AtomicBool::new(false), action: UnsafeCell::new(MaybeUninit::uninit()) }
}; CRASHES.len()];

impl Before {
    fn get(&self) -> Option<&sigaction> {
        // SAFETY: it is written, and never again.
        self.is_known.load(Acquire).then(|| unsafe { (*self.action.get()).assume_init_ref() })
    }
}

pub(crate) fn watch() {
    static IS_WATCHING: AtomicBool = AtomicBool::new(false);
    if IS_WATCHING.swap(true, AcqRel) {
        return;
    }
    for (signal, before) in CRASHES.into_iter().zip(&BEFORE) {
        let Some(found) = disposition(signal) else { continue };
        if found.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        // SAFETY: this is the one thread that writes, and nobody reads yet.
        unsafe { (*before.action.get()).write(found) };
        before.is_known.store(true, Release);
        // What its own handler counts on: which signals are blocked meanwhile, which system calls go on.
        let mut ours = found;
        ours.sa_sigaction = on_signal as *const () as usize;
        ours.sa_flags &= !libc::SA_RESETHAND;
        ours.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `on_signal` is a function of the type that SA_SIGINFO calls for, and safe in a handler.
        unsafe { libc::sigaction(signal, &raw const ours, ptr::null_mut()) };
    }
}

/// What the process does for a signal.
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

/// Calls nothing that is not safe in a handler, but the handler that was there.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: each thread has one.
    let errno = unsafe { &mut *libc::__errno_location() };
    let was = *errno;
    let place = CRASHES.iter().position(|crash| *crash == signal);
    let before = place.and_then(|place| BEFORE.get(place)).and_then(Before::get);
    match before {
        Some(before) if before.sa_sigaction != libc::SIG_DFL => {
            if before.sa_flags & libc::SA_RESETHAND != 0 {
                set_default(signal);
            }
            // SAFETY: it is the handler that the kernel would have called so, by its own flags.
            unsafe { call(before, signal, info, context) };
            // It wants the process to end. Had it gone on elsewhere, it would not have come back, or not so.
            if disposition(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL) {
                crate::tell();
            }
        }
        _ => {
            crate::tell();
            set_default(signal);
            // It comes again as soon as we return, where it came first, and as what it was: also one that was sent, or of
            // an instruction that would not be done again. Were that not to be had, a fault would come back by itself.
            // SAFETY: the kernel gave us `info`; a process may send itself anything.
            unsafe {
                let (pid, tid) = (libc::getpid(), libc::gettid());
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info);
            }
        }
    }
    *errno = was;
}

/// # Safety
/// `action` has a handler, which is called as the kernel calls it.
unsafe fn call(action: &sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    type Plain = unsafe extern "C" fn(c_int);
    type Informed = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    let handler = ptr::with_exposed_provenance::<()>(action.sa_sigaction);
    // SAFETY: the flag says which of the two it is.
    unsafe {
        if action.sa_flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<*const (), Informed>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<*const (), Plain>(handler)(signal);
        }
    }
}
