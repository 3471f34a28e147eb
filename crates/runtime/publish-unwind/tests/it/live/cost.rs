//! A walk through code takes about as many instructions with much code in the process as with little. Counted by callgrind.
#![cfg(all(unix, target_arch = "x86_64"))]
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::process::Command;

use crate::common::Page;
use crate::common::others::{self, EXPECTED};

/// Number of codes, in the process that is measured.
const CODES: &str = "NUMBER_OF_CODES";
const DEPTH: usize = 10;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
}

extern "C" fn visit(_: *mut c_void, count: *mut c_void) -> c_int {
    // SAFETY: the number below.
    unsafe { *count.cast::<usize>() += 1 };
    0
}

/// What callgrind measures: its name is on the command line below.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn the_measured_walk(count: *mut usize) {
    // SAFETY: the number outlives the walk.
    unsafe { _Unwind_Backtrace(visit, count.cast()) };
    std::hint::black_box(());
}

struct Stack<'a> {
    page: &'a Page,
    count: usize,
    depth: usize,
}

extern "C-unwind" fn deeper(_: usize, stack: usize) {
    // SAFETY: the value below, whose function waits.
    let stack = unsafe { &mut *(stack as *mut Stack<'_>) };
    stack.depth += 1;
    if stack.depth == DEPTH {
        let mut frames = 0;
        the_measured_walk(&raw mut frames);
        assert!(frames > 2 * DEPTH, "{frames}");
        return;
    }
    // Code from everywhere.
    let next = stack.count * stack.depth / DEPTH;
    stack.page.caller(next)(deeper, std::ptr::from_mut(stack).expose_provenance());
    std::hint::black_box(());
}

/// Not a test by itself: see below.
#[test]
fn the_measured_process() {
    let Ok(count) = std::env::var(CODES) else { return };
    let count: usize = count.parse().expect("a number");
    let page = Page::new(count);
    // In no order: 7919 is a prime number.
    for number in 0..count {
        page.load(number * 7919 % count);
    }
    let mut stack = Stack { page: &page, count, depth: 0 };
    page.caller(0)(deeper, (&raw mut stack).expose_provenance());
}

/// Number of instructions of a walk of ten jitted frames.
fn instructions(library: &Path, count: usize) -> u64 {
    assert!(library.exists(), "no {}: see scripts/setup.sh", library.display());
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=the_measured_walk")
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "live::cost::the_measured_process", "--test-threads=1"])
        .env(CODES, count.to_string())
        .env(EXPECTED, "Llvm")
        .env("LD_PRELOAD", library)
        .output()
        .expect("valgrind; see scripts/setup.sh");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}\n{said}", String::from_utf8_lossy(&run.stdout));
    let line = said.lines().find_map(|line| line.split_once("Collected : "));
    let number = line.and_then(|(_, number)| number.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no number in\n{said}"))
}

#[test]
fn a_walk_on_llvms_libunwind_hardly_depends_on_the_number_of_codes() {
    for library in others::llvms() {
        let [few, many] = [10, 20_000].map(|count| instructions(&library, count));
        assert!(few > 10_000 && many < 2 * few, "{}: {few} {many}", library.display());
    }
}
