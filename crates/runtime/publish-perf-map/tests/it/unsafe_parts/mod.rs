//! The unsafe parts of the tests.
#![allow(unsafe_code, dead_code)]

use std::io::Error;

/// Forks. `child` runs in the child, which ends with its answer for an exit status; the
/// parent gets the child's exit status, or fails if it has not ended within ten seconds.
pub fn in_a_fork(child: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child runs only code of these tests, on this one thread, and glibc makes its
    // allocator usable in the child of a threaded process. It ends without running destructors
    // or exit handlers.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", Error::last_os_error());
    if pid == 0 {
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        // SAFETY: ends the process; nothing else happens.
        unsafe { libc::_exit(status.map_or(101, i32::from)) };
    }
    for _ in 0..10_000 {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the answer.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            assert!(libc::WIFEXITED(status), "the child ended with status {status:#x}");
            return libc::WEXITSTATUS(status);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // SAFETY: the child is ours, and was not waited for yet.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    panic!("the child hangs");
}

/// Closes all descriptors from 3 on, as programs do that daemonize.
pub fn close_all() {
    // SAFETY: this is what must not be done to other people's descriptors, and what the tests
    // are about. Nothing in the test uses one of them for memory or trusts what it reads there.
    unsafe { libc::close_range(3, u32::MAX, 0) };
}

/// Executable memory at the requested address.
#[derive(Debug)]
pub struct Arena {
    base: *mut u8,
    length: usize,
}

impl Arena {
    /// Maps `length` bytes at `base`, where nothing may be yet.
    pub fn at(base: usize, length: usize) -> Arena {
        // SAFETY: MAP_FIXED_NOREPLACE never takes memory that is in use.
        let mapped = unsafe {
            libc::mmap(
                base as *mut libc::c_void,
                length,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        assert_eq!(mapped as usize, base, "{}", Error::last_os_error());
        Arena { base: mapped.cast(), length }
    }

    /// Runs a busy loop of a few milliseconds in page `page`.
    #[cfg(target_arch = "x86_64")]
    pub fn spin(&mut self, page: usize) {
        // mov ecx, 0x1000000; 1: dec ecx; jnz 1b; ret
        const CODE: [u8; 10] = [0xb9, 0, 0, 0, 1, 0xff, 0xc9, 0x75, 0xfc, 0xc3];
        assert!((page + 1) * 4096 <= self.length);
        // SAFETY: the page is within the mapping, which is ours alone (`&mut self`), writable
        // and executable. The code is a whole function of the C calling convention that takes
        // and gives nothing, and changes only ecx, which its caller does not expect to be kept.
        unsafe {
            let code = self.base.add(page * 4096);
            code.copy_from_nonoverlapping(CODE.as_ptr(), CODE.len());
            let call: extern "C" fn() = std::mem::transmute(code);
            call();
        }
    }
}
