//! The cost of announcing code, and of walking through it, for growing amounts of code: for each unwinder, in a process of
//! its own.
//!
//! `cargo bench -p publish-unwind --bench walk`
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a table")]

#[path = "../tests/it/common/mod.rs"]
mod common;
#[path = "../tests/live/nongnu.rs"]
mod nongnu;

use std::ffi::{c_int, c_void};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Page, others, unwinders};
use nongnu::Libunwind;

/// For a process that walks with libunwind.
const STEPS: &str = "BY_LIBUNWIND";
const COUNTS: [usize; 4] = [10, 1000, 10_000, 100_000];
/// Number of measured walks; the median is used.
const OFTEN: usize = 301;

extern "C" fn visit(_: *mut c_void, count: *mut c_void) -> c_int {
    // SAFETY: the number from below.
    unsafe { *count.cast::<usize>() += 1 };
    0
}

/// Number of frames that `_Unwind_Backtrace` finds.
fn frames() -> usize {
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            argument: *mut c_void,
        ) -> c_int;
    }
    let mut count = 0_usize;
    // SAFETY: the number outlives the walk.
    unsafe { _Unwind_Backtrace(visit, (&raw mut count).cast()) };
    count
}

/// What the innermost function does.
struct Walk<'a> {
    library: Option<&'a Libunwind>,
    page: &'a Page,
    /// Number of jitted frames below.
    depth: usize,
    next: usize,
    count: usize,
    times: Vec<Duration>,
    found: usize,
}

extern "C-unwind" fn inner(_: usize, to: usize) {
    // SAFETY: the benchmark's own, which waits.
    let walk = unsafe { &mut *(to as *mut Walk<'_>) };
    walk.depth -= 1;
    if walk.depth > 0 {
        // Jitted frames from all over the memory.
        walk.next = (walk.next + walk.count / 10 * 7 + 1) % walk.count;
        walk.page.caller(walk.next)(inner, to);
        // Prevents a tail call.
        std::hint::black_box(());
        return;
    }
    for _ in 0..=OFTEN {
        let began = Instant::now();
        walk.found = match walk.library {
            Some(library) => library.walk().len(),
            None => frames(),
        };
        walk.times.push(began.elapsed());
    }
}

fn measure(library: Option<&Libunwind>, count: usize, scattered: bool) {
    let page = Page::new(count);
    let place = |number: usize| if scattered { number * 7919 % count } else { number };
    let began = Instant::now();
    for number in 0..count {
        page.load(place(number));
    }
    let load = began.elapsed() / count as u32;
    let mut walk =
        Walk { library, page: &page, depth: 10, next: 0, count, times: Vec::new(), found: 0 };
    page.caller(0)(inner, (&raw mut walk).expose_provenance());
    assert!(walk.found >= 20, "{}", walk.found);
    let first = walk.times.remove(0);
    walk.times.sort();
    // With one code loaded in between.
    let mut changed: Vec<_> = (0..51)
        .map(|round| {
            page.unload(place(round % count));
            page.load(place(round % count));
            let mut walk = Walk { depth: 10, times: Vec::new(), ..walk };
            page.caller(0)(inner, (&raw mut walk).expose_provenance());
            walk.times[0]
        })
        .collect();
    changed.sort();
    let began = Instant::now();
    for number in 0..count {
        page.unload(place(number));
    }
    let unload = began.elapsed() / count as u32;
    let order = if scattered { "scattered" } else { "ascending" };
    println!(
        "| {count} | {order} | {load:.2?} | {unload:.2?} | {first:.1?} | {:.1?} | {:.1?} |",
        changed[changed.len() / 2],
        walk.times[walk.times.len() / 2],
    );
}

fn main() {
    // The process to run in.
    if std::env::var_os(others::EXPECTED).is_some() {
        let library = std::env::var_os(STEPS).map(|_| Libunwind::load());
        println!(
            "\n{:?}{}:\n",
            unwinders().kind(),
            if library.is_some() { ", libunwind" } else { "" }
        );
        println!(
            "| codes | in order | announcing one | unloading one | first walk | walk after a change | walk |"
        );
        println!("|---|---|---|---|---|---|---|");
        for count in COUNTS {
            for scattered in [false, true] {
                measure(library.as_ref(), count, scattered);
            }
        }
        return;
    }
    let this = || Command::new(std::env::current_exe().expect("this program"));
    let mut steps = this();
    steps.env(STEPS, "1");
    let llvms = others::llvms();
    let mut runs = vec![(this(), "OldLibgcc"), (steps, "OldLibgcc"), (others::trixie(), "Libgcc")];
    runs.extend(llvms.iter().map(|llvm| (others::llvm(llvm), "Llvm")));
    println!("Walks of ten jitted frames, as many native ones between, and the benchmark's own.");
    for (mut command, kind) in runs {
        let done = command.env(others::EXPECTED, kind).status().expect("this program");
        assert!(done.success(), "{kind}");
    }
}
