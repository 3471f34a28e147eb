//! The set of signals that a thread holds back, changed in as few instructions as possible and without touching `errno`.
#![allow(unsafe_code)]

/// A set of signals, as the kernel has it.
pub(crate) type Mask = u64;

/// Adds to the signals that are held back, and returns those that were before. `None` if the system refuses.
#[inline(always)]
pub(crate) fn hold(added: &Mask) -> Option<Mask> {
    let mut before = 0;
    // SAFETY: a set to read and one to write. Only the thread's signals change.
    let failed = unsafe { rt_sigprocmask(libc::SIG_BLOCK, added, &raw mut before) };
    (failed == 0).then_some(before)
}

/// Holds back exactly these signals.
#[inline(always)]
pub(crate) fn set(mask: &Mask) {
    // SAFETY: a set to read. Only the thread's signals change.
    unsafe { rt_sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// The system call of this name. Returns 0 on success.
///
/// # Safety
/// `before` is null or valid for writing.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
#[inline(always)]
unsafe fn rt_sigprocmask(how: libc::c_int, mask: &Mask, before: *mut Mask) -> isize {
    let mut result = libc::SYS_rt_sigprocmask as isize;
    // SAFETY: System V ABI, "Linux Conventions": number and arguments are in these registers; the kernel changes rcx and r11, and
    // returns in rax. It reads one set of this size and writes the other one.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") how as isize,
            in("rsi") mask,
            in("rdx") before,
            in("r10") size_of::<Mask>(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// As above.
///
/// # Safety
/// `before` is null or valid for writing.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64"))]
#[inline(always)]
unsafe fn rt_sigprocmask(how: libc::c_int, mask: &Mask, before: *mut Mask) -> isize {
    let mut result = how as isize;
    // SAFETY: syscall(2), "Architecture calling conventions": number and arguments are in these registers, and the result is in x0.
    // The kernel reads one set of this size and writes the other one.
    unsafe {
        core::arch::asm!(
            "svc 0",
            inlateout("x0") result,
            in("x1") mask,
            in("x2") before,
            in("x3") size_of::<Mask>(),
            in("x8") libc::SYS_rt_sigprocmask as isize,
            options(nostack),
        );
    }
    result
}

/// Refused: requests to callgrind are not known for this machine, so that nothing is ever held back.
///
/// # Safety
/// None is needed.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64"
)))]
unsafe fn rt_sigprocmask(_: libc::c_int, _: &Mask, _: *mut Mask) -> isize {
    -1
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::{Mask, hold, set};

    #[test]
    fn signals_are_held_and_errno_stays() {
        let bit = |signal: i32| 1_u64 << (signal - 1);
        let of_thread = || {
            let mut mask = MaybeUninit::uninit();
            // SAFETY: none to read, and one to write, which this call does unless it fails.
            let mask = unsafe {
                let failed =
                    libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
                assert_eq!(failed, 0);
                mask.assume_init()
            };
            // SAFETY: a set.
            [libc::SIGUSR1, libc::SIGUSR2]
                .map(|signal| unsafe { libc::sigismember(&raw const mask, signal) } == 1)
        };
        let first = bit(libc::SIGUSR1);
        let second: Mask = bit(libc::SIGUSR2);
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOTTY };
        let outer = hold(&first).unwrap();
        assert_eq!((outer & (first | second), of_thread()), (0, [true, false]));
        let inner = hold(&second).unwrap();
        assert_eq!((inner & (first | second), of_thread()), (first, [true, true]));
        set(&inner);
        assert_eq!(of_thread(), [true, false]);
        set(&outer);
        assert_eq!(of_thread(), [false, false]);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOTTY));
    }
}
