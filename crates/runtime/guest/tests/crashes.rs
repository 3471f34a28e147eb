//! Processes that crash, each in its own way: this program, started again.
//!
//!     cargo test -p jitscribe-guest --test crashes [-- PART-OF-A-NAME...]
#![cfg(target_os = "linux")]
#![allow(unsafe_code, clippy::print_stdout, clippy::exit, reason = "a test")]

use std::ffi::c_int;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Output};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::time::{Duration, Instant};

type Crash = (&'static str, fn(), c_int, &'static str);

/// A way to crash, the signal that then ends the process (0: it ends normally), and its output.
const CRASHES: &[Crash] = &[
    ("fault", fault, libc::SIGSEGV, "work "),
    ("illegal", illegal, libc::SIGILL, "work "),
    ("abort", abort, libc::SIGABRT, "work "),
    ("sent", sent, libc::SIGFPE, "work "),
    ("in_malloc", in_malloc, libc::SIGABRT, "work "),
    ("many_threads", many_threads, libc::SIGSEGV, "work "),
    ("handler_gives_up", handler_gives_up, libc::SIGSEGV, "handler work "),
    ("handler_aborts", handler_aborts, libc::SIGSEGV, "handler work "),
    ("handler_came_later", handler_came_later, libc::SIGSEGV, "handler work "),
    ("handler_asks", handler_asks, libc::SIGABRT, "work handler "),
    ("handler_goes_on", handler_goes_on, 0, "handler end "),
    ("handler_once", handler_once, libc::SIGSEGV, "handler work "),
    ("ignored", ignored, 0, "end "),
    ("stack_overflow", stack_overflow, libc::SIGABRT, "work "),
    ("child", child, 0, "child 1 "),
    ("child_prepared", child_prepared, 0, "work child 1 "),
    ("in_the_work", in_the_work, libc::SIGSEGV, ""),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, name] = arguments.as_slice()
        && role == "crash"
    {
        let (_, crash, ..) = CRASHES.iter().find(|crash| crash.0 == name).expect("a crash");
        // No core file, and no unrequested output of the standard library.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: it reads the limit.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        crash();
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, _, signal, says) in CRASHES {
        if !arguments.is_empty() && !arguments.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let began = Instant::now();
        let output = Command::new(std::env::current_exe().expect("a path"))
            .args(["crash", name])
            .output()
            .expect("it starts");
        let Output { status, stdout, .. } = &output;
        let said = String::from_utf8_lossy(stdout);
        let is_ok = status.signal().unwrap_or(0) == *signal
            && said == *says
            && began.elapsed() < Duration::from_secs(4);
        println!("test {name} ... {}", if is_ok { "ok" } else { "FAILED" });
        if !is_ok {
            println!("{status} {said:?}, not {signal} {says:?}");
            println!("{}", String::from_utf8_lossy(&output.stderr));
            failed += 1;
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Also called in a handler.
fn say(text: &[u8]) {
    // SAFETY: the bytes are there.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}

/// Work that needs the allocator.
fn prepare() {
    jitscribe_guest::crash_signal::prepare(|| {
        let text = format!("{} ", std::hint::black_box("work"));
        std::io::stdout().write_all(text.as_bytes()).expect("someone reads");
        std::io::stdout().flush().expect("someone reads");
    })
    .expect("a thread");
    // It prints when it runs.
    std::thread::sleep(Duration::from_millis(50));
}

fn watch() {
    prepare();
    jitscribe_guest::crash_signal::watch();
}

fn crash() {
    // SAFETY: none: this is being tested.
    unsafe { ptr::without_provenance_mut::<u8>(16).write_volatile(1) };
}

fn send(signal: c_int) {
    // SAFETY: a process may send itself any signal.
    unsafe { libc::raise(signal) };
}

/// Sets a handler, with `flags`.
fn handle(signal: c_int, handler: extern "C" fn(c_int), flags: c_int) {
    // SAFETY: all zero is no flags and no signal blocked; the handler is safe in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}

fn fault() {
    watch();
    crash();
}

fn illegal() {
    watch();
    // SAFETY: none: this is being tested.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("ud2");
    }
    #[cfg(not(target_arch = "x86_64"))]
    send(libc::SIGILL);
}

fn abort() {
    watch();
    std::process::abort();
}

fn sent() {
    watch();
    send(libc::SIGFPE);
}

/// The C library ends the process while its allocator is in use.
fn in_malloc() {
    watch();
    // SAFETY: none: this is being tested.
    unsafe {
        let one = std::hint::black_box(libc::malloc(4000));
        let _between = std::hint::black_box(libc::malloc(24));
        libc::free(one);
        libc::free(one);
    }
}

/// Dozens of threads that allocate all the time: more than the allocator has arenas.
fn many_threads() {
    for _ in 0..40 {
        std::thread::spawn(|| {
            loop {
                std::hint::black_box(vec![0_u8; 2000]);
            }
        });
    }
    watch();
    crash();
}

extern "C" fn gives_up(signal: c_int) {
    say(b"handler ");
    // SAFETY: it takes numbers.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

fn handler_gives_up() {
    handle(libc::SIGSEGV, gives_up, 0);
    watch();
    crash();
}

extern "C" fn aborts(_: c_int) {
    say(b"handler ");
    // SAFETY: it takes numbers, and ends the process.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    }
}

/// The signal is pending while its handler runs.
fn handler_aborts() {
    handle(libc::SIGSEGV, aborts, 0);
    watch();
    send(libc::SIGSEGV);
}

static OURS: AtomicI32 = AtomicI32::new(0);

extern "C" fn passes_on(signal: c_int) {
    say(b"handler ");
    if OURS.swap(1, SeqCst) == 0 {
        let found = FOUND.get().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: restores what `handler_came_later` found there.
        unsafe { libc::sigaction(signal, found, ptr::null_mut()) };
    }
}

static FOUND: OnceLock<libc::sigaction> = OnceLock::new();

/// Handlers that were installed later restore the previous one, and let the fault recur.
fn handler_came_later() {
    watch();
    // SAFETY: all zero is a value, which is written to.
    let found = unsafe {
        let mut found = std::mem::zeroed();
        libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut found);
        found
    };
    FOUND.get_or_init(|| found);
    handle(libc::SIGSEGV, passes_on, 0);
    crash();
}

extern "C" fn asks(_: c_int) {
    assert!(jitscribe_guest::crash_signal::run_now());
    say(b"handler ");
    // Only once.
    // SAFETY: it takes numbers, and ends the process.
    unsafe {
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
        libc::abort();
    }
}

fn handler_asks() {
    prepare();
    handle(libc::SIGSEGV, asks, 0);
    crash();
}

extern "C" fn goes_on(_: c_int) {
    say(b"handler ");
}

/// Runtimes that turn signals into exceptions, or send them to themselves.
fn handler_goes_on() {
    handle(libc::SIGSEGV, goes_on, 0);
    watch();
    send(libc::SIGSEGV);
    say(b"end ");
}

/// The kernel removes such a handler before it calls it.
fn handler_once() {
    handle(libc::SIGSEGV, goes_on, libc::SA_RESETHAND);
    watch();
    crash();
}

fn ignored() {
    // SAFETY: it takes numbers.
    unsafe { libc::signal(libc::SIGFPE, libc::SIG_IGN) };
    watch();
    send(libc::SIGFPE);
    say(b"end ");
}

/// The standard library has a handler for that, on a stack of its own, and aborts.
fn stack_overflow() {
    watch();
    fn down(count: u64) -> u64 {
        let here = std::hint::black_box([count; 100]);
        if count == u64::MAX { 0 } else { down(count + 1) + here[7] }
    }
    std::hint::black_box(down(0));
}

/// Prints whether the child of a fork died of its crash.
fn fork_and(crash_in_child: impl FnOnce()) {
    // SAFETY: the child calls what a test calls; this process has two threads, and the other one is waiting.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            crash_in_child();
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        let died = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV;
        say(format!("child {} ", i32::from(died)).as_bytes());
    }
}

/// A child without the thread ends as it would without this crate.
fn child() {
    watch();
    fork_and(crash);
}

fn child_prepared() {
    watch();
    fork_and(|| {
        jitscribe_guest::crash_signal::forked().expect("a thread");
        std::thread::sleep(Duration::from_millis(50));
        crash();
    });
}

/// Work that crashes does not wait for itself.
fn in_the_work() {
    jitscribe_guest::crash_signal::prepare(crash).expect("a thread");
    jitscribe_guest::crash_signal::watch();
    crash();
}
