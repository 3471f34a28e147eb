//! The system calls that a worker may make after it has opened everything it needs: for reading, memory, and the answer.

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, sock_filter,
};

use super::sys;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const ARCHITECTURE: u32 = 0;

/// None of these opens a file, creates a process, sends a signal or connects a socket.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_write,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_sendmsg,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The offsets of the system call number and the architecture in the data of a filter (`struct seccomp_data`).
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// Makes all other system calls fail from now on.
///
/// # Errors
/// If the kernel does not support filters, or there is no filter for this architecture.
pub fn lock() -> io::Result<()> {
    if ARCHITECTURE == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    sys::set_filter(&program())
}

fn program() -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE_AT),
        // 32-bit system calls have other numbers, so the list would not apply to them.
        skip_if(ARCHITECTURE, 1),
        answer(SECCOMP_RET_KILL_PROCESS),
        load(NUMBER_AT),
    ];
    for &call in ALLOWED {
        let Ok(number) = u32::try_from(call) else { continue };
        program.push(skip_unless(number, 1));
        program.push(answer(SECCOMP_RET_ALLOW));
    }
    program.push(answer(SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()));
    program
}

fn load(at: u32) -> sock_filter {
    sock_filter { code: code(BPF_LD | BPF_W | BPF_ABS), jt: 0, jf: 0, k: at }
}

fn skip_if(value: u32, count: u8) -> sock_filter {
    sock_filter { code: code(BPF_JMP | BPF_JEQ | BPF_K), jt: count, jf: 0, k: value }
}

fn skip_unless(value: u32, count: u8) -> sock_filter {
    sock_filter { code: code(BPF_JMP | BPF_JEQ | BPF_K), jt: 0, jf: count, k: value }
}

fn answer(action: u32) -> sock_filter {
    sock_filter { code: code(BPF_RET | BPF_K), jt: 0, jf: 0, k: action }
}

fn code(code: u32) -> u16 {
    // All of these constants fit.
    u16::try_from(code).unwrap_or_default()
}
