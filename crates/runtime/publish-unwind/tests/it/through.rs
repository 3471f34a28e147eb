//! Exceptions, panics and backtraces pass through code that was made at run time, in frames without a frame pointer.
#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

#[cfg(target_arch = "x86_64")]
use crate::common::others::trixie;
use crate::common::others::{all_pass, foreign, llvm, llvms};
use crate::common::{CALLER, Callback, Caller, Page, ROWS, SAVER, unwinders};
use publish_unwind::{Code, Unwind};

/// One lock for all tests: they measure, and change what affects all walks.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

extern "C-unwind" fn throw(_: usize, number: usize) {
    std::panic::resume_unwind(Box::new(number));
}

fn passes(call: Caller, number: usize) {
    let caught = catch_unwind(|| call(throw, number)).expect_err("a panic");
    assert_eq!(caught.downcast_ref(), Some(&number));
}

#[test]
fn a_panic_passes_through_each_of_many() {
    let _alone = alone();
    let page = Page::new(2000);
    // In an order in which each is between others.
    let order: Vec<usize> = (0..2000).map(|number| number * 77 % 2000).collect();
    for &number in &order {
        page.load(number);
    }
    for number in 0..2000 {
        passes(page.caller(number), number);
    }
    // Half of them are unloaded, the others stay.
    for number in (0..2000).step_by(2) {
        page.unload(number);
    }
    for number in (1..2000).step_by(2) {
        passes(page.caller(number), number);
        page.unload(number);
    }
}

static CALL: AtomicUsize = AtomicUsize::new(0);

extern "C-unwind" fn deeper(_: usize, depth: usize) {
    if depth == 0 {
        throw(0, 5);
    }
    // SAFETY: code that the test has put there.
    let call = unsafe { std::mem::transmute::<usize, Caller>(CALL.load(Relaxed)) };
    call(deeper, depth - 1);
}

#[test]
fn a_panic_passes_through_a_thousand_frames() {
    let _alone = alone();
    let page = Page::new(1);
    let call = page.load(0);
    CALL.store(page.address(0) as usize, Relaxed);
    let caught = catch_unwind(|| call(deeper, 1000)).expect_err("a panic");
    assert_eq!(caught.downcast_ref(), Some(&5_usize));
    page.unload(0);
}

extern "C-unwind" fn look(_: usize, to: usize) {
    let text = std::backtrace::Backtrace::force_capture().to_string();
    // SAFETY: the test's own, which waits.
    unsafe { *(to as *mut String) = text };
}

#[inline(never)]
fn native_bottom(call: Caller, callback: Callback, argument: usize) {
    call(callback, argument);
    std::hint::black_box(());
}

#[test]
fn a_backtrace_passes_through() {
    let _alone = alone();
    let page = Page::new(1);
    let call = page.load(0);
    let mut text = String::new();
    native_bottom(call, look, (&raw mut text).expose_provenance());
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in\n{text}"));
    assert!(place("look") < place("native_bottom"), "{text}");
    page.unload(0);
}

/// Code with tables that its compiler made.
#[test]
fn a_ready_section_is_registered() {
    let _alone = alone();
    let page = Page::new(1);
    let start = page.address(0);
    let mut section = Vec::new();
    let machine = unwind_info::Machine::host().expect("a machine with frames");
    let size = CALLER.len() as u64;
    let behind = unwind_info::offset_behind(size).expect("a place") as i64;
    unwind_info::eh_frame(machine, size, behind, &Unwind::Rows(&ROWS), &mut section)
        .expect("a section");
    unwinders().load(&Code::at(start, size).unwind(Unwind::EhFrame(&section)));
    passes(page.caller(0), 3);
    page.unload(0);
}

/// Frames whose return addresses are signed with key B, as V8 does.
#[cfg(target_arch = "aarch64")]
#[test]
fn a_panic_passes_through_frames_of_key_b() {
    let _alone = alone();
    let page = Page::new(2);
    page.write(1, &crate::common::CALLER_KEY_B);
    let size = CALLER.len() as u64;
    let behind = unwind_info::offset_behind(size).expect("a place") as i64;
    let mut section = Vec::new();
    unwind_info::eh_frame_key_b(size, behind, &Unwind::Rows(&ROWS), &mut section)
        .expect("a section");
    unwinders().load(&Code::at(page.address(1), size).unwind(Unwind::EhFrame(&section)));
    passes(page.caller(1), 4);
    // The signature is there: without the mark of key B, the unwinder authenticates with key A, and finds garbage.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        unwinders().forked();
        page.load(1);
        // SAFETY: ends the child at a failure, without a core file.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
        passes(page.caller(1), 4);
        // SAFETY: ends the child without what the harness would do.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child from above.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_ne!(status, 0, "nothing is signed on this processor");
    page.unload(1);
}

const THROWER: &str = r#"
#include <stdexcept>
#include <cstring>
extern "C" {
typedef void (*callback)(unsigned long, unsigned long);
typedef void (*caller)(callback, unsigned long);
static caller again;
static void deeper(unsigned long, unsigned long depth) {
    if (depth == 0) throw std::runtime_error("through");
    again(deeper, depth - 1);
    asm volatile(""); // prevents a tail call
}
int through(caller call, unsigned long frames) {
    again = call;
    try { call(deeper, frames - 1); } catch (const std::exception &error) { return !std::strcmp(error.what(), "through"); }
    return 0;
}
// Has two numbers in registers that `call` must preserve.
unsigned long kept(caller call, unsigned long first, unsigned long second) {
    unsigned long triple = first * 3, fivefold = second * 5;
    try { call(deeper, 0); } catch (const std::exception &) { return triple + fivefold; }
    return 0;
}
}
"#;

/// A function of [`THROWER`].
fn thrower(function: &std::ffi::CStr) -> *mut libc::c_void {
    let name = format!("publish-unwind-{}-{}", function.to_string_lossy(), std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("through.cpp"), folder.join("through.so"));
    std::fs::write(&source, THROWER).unwrap();
    let compiler = std::env::var("JITSCRIBE_CXX").unwrap_or_else(|_| "c++".to_owned());
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    assert!(built.expect("c++; see scripts/setup.sh").success());
    let path = std::ffi::CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library from above, whose initialization does nothing.
    let found =
        unsafe { libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW), function.as_ptr()) };
    assert!(!found.is_null());
    std::fs::remove_dir_all(folder).unwrap();
    found
}

#[test]
fn a_cpp_exception_passes_through() {
    let _alone = alone();
    let through = thrower(c"through");
    // SAFETY: its type.
    let through = unsafe {
        std::mem::transmute::<*mut libc::c_void, extern "C" fn(Caller, usize) -> i32>(through)
    };
    let page = Page::new(1);
    let call = page.load(0);
    for frames in [1, 1000] {
        assert_eq!(through(call, frames), 1);
    }
    page.unload(0);
}

/// Code with a frame pointer that saves other registers behind its prologue, and does not list them.
#[test]
fn registers_that_code_saves_are_restored() {
    let _alone = alone();
    let kept = thrower(c"kept");
    // SAFETY: its type.
    let kept = unsafe {
        std::mem::transmute::<*mut libc::c_void, extern "C" fn(Caller, usize, usize) -> usize>(kept)
    };
    let page = Page::new(1);
    page.write(0, &SAVER);
    // SAFETY: written above, and not changed any more.
    let bytes = unsafe { std::slice::from_raw_parts(page.address(0) as *const u8, SAVER.len()) };
    unwinders().load(&Code::new(bytes).frame_pointer());
    assert_eq!(kept(page.caller(0), 1000, 2000), 13_000);
    page.unload(0);
}

/// One thread loads and unloads, while three throw, also through this code.
#[test]
fn other_threads_throw_while_code_is_loaded_and_unloaded() {
    let _alone = alone();
    // QEMU takes twenty times as long.
    let often = if foreign().is_some() { 500 } else { 10_000 };
    let page = Page::new(1200);
    for number in (0..1200).step_by(3) {
        page.load(number);
    }
    let done = AtomicBool::new(false);
    let thrown = AtomicUsize::new(0);
    let page = &page;
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (done, thrown) = (&done, &thrown);
            scope.spawn(move || {
                let mut number = thread * 3;
                while !done.load(Relaxed) {
                    passes(page.caller(number), number);
                    number = (number + 21) % 1200;
                    // Pauses, so that the unwinder's lock is not held all the time.
                    if thrown.fetch_add(1, Relaxed).is_multiple_of(10) {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                }
            });
        }
        // At least so often, and until the others have thrown while it went on, however busy the machine is.
        let rounds = (0..).take_while(|round| *round < often || thrown.load(Relaxed) <= 100);
        for round in rounds {
            let number = (round * 7 % 400) * 3 + 1;
            let call = page.load(number);
            if round % 100 == 0 {
                passes(call, round);
            }
            page.unload(number);
        }
        done.store(true, Relaxed);
    });
    for number in (0..1200).step_by(3) {
        page.unload(number);
    }
}

#[test]
fn registrations_work_after_a_fork() {
    let _alone = alone();
    let page = Page::new(2);
    page.load(0);
    // SAFETY: the child runs code of this test alone, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        unwinders().forked();
        passes(page.caller(0), 1);
        passes(page.load(1), 2);
        // SAFETY: ends the child without what the harness would do.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: the child from above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    page.unload(0);
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn with_llvms_libunwind() {
        for library in llvms() {
            all_pass(llvm(&library), "through::", "Llvm", &[], 8);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn with_libgcc_14() {
        all_pass(trixie(), "through::", "Libgcc", &[], 8);
    }
}
