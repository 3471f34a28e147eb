//! libunwind (nongnu) walks through code that was made at run time.
#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread::ScopedJoinHandle;

use crate::common::others::foreign;
#[cfg(target_arch = "x86_64")]
use crate::common::others::{all_pass, trixie};
#[cfg(target_arch = "x86_64")]
use crate::common::{LARGE, LARGE_ROWS, OTHER, OTHER_ROWS};
use crate::common::{NOP, Page, ROOM, caller, unwinders};
use crate::nongnu::Libunwind;

fn library() -> &'static Libunwind {
    static LIBRARY: OnceLock<Libunwind> = OnceLock::new();
    LIBRARY.get_or_init(Libunwind::load)
}

/// Set if the library knows of signed return addresses. 1.6.2, that of Debian 12, ends a walk at the first one.
const SIGNED: &str = "JITSCRIBE_LIBUNWIND_KNOWS_SIGNATURES";

fn prepare() {
    if std::env::var_os(SIGNED).is_none() {
        crate::common::sign_nothing();
    }
}

/// Runs the tests one by one: libunwind's cache is flushed whenever any code is unloaded.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    prepare();
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The result of libgcc, which `through.rs` tests.
#[inline(never)]
fn truth() -> Vec<u64> {
    type Visit = extern "C" fn(*mut c_void, *mut c_void) -> c_int;
    unsafe extern "C" {
        fn _Unwind_Backtrace(visit: Visit, argument: *mut c_void) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> u64;
    }
    extern "C" fn visit(context: *mut c_void, all: *mut c_void) -> c_int {
        // SAFETY: called by the walk below.
        unsafe { (*all.cast::<Vec<u64>>()).push(_Unwind_GetIP(context)) };
        0
    }
    let mut all = Vec::new();
    // SAFETY: the list outlives the walk.
    unsafe { _Unwind_Backtrace(visit, (&raw mut all).cast()) };
    all
}

/// The results of three walks, from the innermost jitted frame on.
struct Walks<'a> {
    page: &'a Page,
    found: Vec<Vec<u64>>,
}

extern "C-unwind" fn look(_: usize, to: usize) {
    // SAFETY: the test's own, which waits.
    let walks = unsafe { &mut *(to as *mut Walks<'_>) };
    walks.found = [library().walk(), library().backtrace(), truth()]
        .into_iter()
        .map(|all| all.into_iter().skip_while(|ip| !walks.page.contains(*ip)).collect())
        .collect();
}

fn walks(page: &Page, number: usize) -> Vec<Vec<u64>> {
    let mut walks = Walks { page, found: Vec::new() };
    page.caller(number)(look, (&raw mut walks).expose_provenance());
    walks.found
}

/// libunwind ends where libgcc does, or one frame later, at the beginning of the stack.
#[track_caller]
fn same(walk: &[u64], truth: &[u64], jitted: usize, page: &Page) {
    assert!(truth.len() > jitted + 3, "{truth:x?}");
    let common = truth.iter().zip(walk).take_while(|(one, other)| one == other).count();
    assert!(common + 1 >= truth.len(), "{common} of\n{walk:x?}\n{truth:x?}");
    assert_eq!(walk.iter().filter(|ip| page.contains(**ip)).count(), jitted);
}

static CALL: Mutex<Option<crate::common::Caller>> = Mutex::new(None);
static DEPTH: AtomicUsize = AtomicUsize::new(0);

extern "C-unwind" fn deeper(this: usize, to: usize) {
    if DEPTH.fetch_sub(1, Relaxed) == 1 {
        return look(this, to);
    }
    let call = CALL.lock().unwrap().expect("a caller");
    call(deeper, to);
}

#[test]
fn a_walk_passes_through_one_frame_and_a_thousand() {
    let _alone = alone();
    library();
    let page = Page::new(1);
    let call = page.load(0);
    let found = walks(&page, 0);
    same(&found[0], &found[2], 1, &page);
    same(&found[1], &found[2], 1, &page);

    *CALL.lock().unwrap() = Some(call);
    DEPTH.store(1000, Relaxed);
    let mut walks = Walks { page: &page, found: Vec::new() };
    call(deeper, (&raw mut walks).expose_provenance());
    same(&walks.found[0], &walks.found[2], 1000, &page);
    same(&walks.found[1], &walks.found[2], 1000, &page);
    page.unload(0);
}

/// In any order, with every second one unloaded; walks do not pass through unloaded code any more.
#[test]
fn each_of_many_codes_is_found_until_it_is_unloaded() {
    let _alone = alone();
    library();
    let page = Page::new(5000);
    let order = (0..5000).map(|number| number * 77 % 5000);
    for number in order {
        page.load(number);
    }
    let passes = |number: usize| {
        let found = walks(&page, number);
        same(&found[0], &found[2], 1, &page);
    };
    (0..5000).step_by(7).for_each(passes);
    (0..5000).step_by(2).for_each(|number| page.unload(number));
    (1..5000).step_by(14).for_each(passes);
    for number in (0..5000).step_by(500) {
        let found = walks(&page, number);
        // Nothing is known about the frame, whose frame pointer is 0.
        assert!(found[0].len() < found[2].len().max(4), "{number}: {:x?}", found[0]);
    }
    (1..5000).step_by(2).for_each(|number| page.unload(number));
}

/// The same address, and another frame. Not on AArch64: libunwind's cache cannot be flushed there (`docs/unwinders.md`).
#[cfg(target_arch = "x86_64")]
#[test]
fn code_in_the_place_of_other_code_has_its_own_rules() {
    let _alone = alone();
    library();
    let page = Page::new(1);
    for _ in 0..50 {
        for (code, rows) in [caller(), (&OTHER, &OTHER_ROWS[..]), (&LARGE, &LARGE_ROWS[..])] {
            page.write(0, code);
            page.load_as(0, code.len(), rows);
            // On a thread of its own: `unw_backtrace` caches for each thread how an address is unwound.
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let found = walks(&page, 0);
                    same(&found[0], &found[2], 1, &page);
                    same(&found[1], &found[2], 1, &page);
                });
            });
            // Every second time it is unloaded first, otherwise it is replaced.
            if code == caller().0 {
                page.unload(0);
            }
        }
    }
    page.unload(0);
}

/// Seven threads walk through code that stays, while they and an eighth thread load and unload other code.
#[test]
fn eight_threads_walk_while_code_is_loaded_and_unloaded() {
    let _alone = alone();
    library();
    let page = Page::new(4000);
    for number in (0..4000).step_by(2) {
        page.load(number);
    }
    let (page, done, walked) = (&page, AtomicBool::new(false), AtomicUsize::new(0));
    // QEMU takes twenty times as long.
    let often = if foreign().is_some() { 100 } else { 3000 };
    std::thread::scope(|scope| {
        let walkers: Vec<_> = (0..7_usize)
            .map(|thread| {
                let (done, walked) = (&done, &walked);
                scope.spawn(move || {
                    let mut number = thread;
                    while !done.load(Relaxed) {
                        let found = walks(page, number * 2 % 4000);
                        same(&found[0], &found[2], 1, page);
                        same(&found[1], &found[2], 1, page);
                        number += 11;
                        // Its own code.
                        let own = (number * 7 + thread) * 2 % 3900 / 14 * 14 + thread * 2 + 1;
                        page.load(own);
                        let found = walks(page, own);
                        same(&found[0], &found[2], 1, page);
                        page.unload(own);
                        walked.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        let mut rounds = 0_usize;
        let has_failed = || walkers.iter().any(ScopedJoinHandle::is_finished);
        // Both, however little time this thread gets beside the others on a busy machine.
        while (walked.load(Relaxed) < often || rounds <= often) && !has_failed() {
            // Code across the whole range that nothing walks through, again and again.
            let number = 3990 + rounds % 5 * 2 + 1;
            page.load(number);
            page.unload(number);
            rounds += 1;
        }
        done.store(true, Relaxed);
    });
    (0..4000).for_each(|number| page.unload(number));
}

/// In a process of its own: the library is loaded when there is code already.
#[test]
fn a_library_that_is_loaded_later_gets_all_code() {
    const ROLE: &str = "COMES_LATE";
    if std::env::var_os(ROLE).is_none() {
        let this = std::env::current_exe().expect("this program");
        let done = std::process::Command::new(this)
            .args(["--exact", "libunwind::a_library_that_is_loaded_later_gets_all_code"])
            .env(ROLE, "1")
            .output()
            .expect("this program");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    prepare();
    let page = Page::new(200);
    for number in 0..199 {
        page.load(number);
    }
    // SAFETY: a name that ends with a NUL, and a flag that has nothing loaded.
    let there =
        unsafe { libc::dlopen(c"libunwind.so.8".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
    assert!(there.is_null(), "it was there already");
    library();
    page.load(199);
    for number in [0, 100, 199] {
        let found = walks(&page, number);
        same(&found[0], &found[2], 1, &page);
    }
}

/// Code across the boundary of two blocks of 4 MiB, each of which has an entry in libunwind's list.
#[test]
fn code_across_two_blocks_is_found_in_both() {
    const BLOCK: u64 = 4 << 20;
    let _alone = alone();
    library();
    let page = Page::new((2 * BLOCK as usize) / ROOM);
    let boundary = (page.address(0) + 64).next_multiple_of(BLOCK);
    let number = ((boundary - page.address(0)) / ROOM as u64) as usize - 1;
    // On either side of the boundary, of what are nops before the code itself.
    let nops = ROOM + ROOM / 3 / NOP.len() * NOP.len();
    let mut long: Vec<u8> = NOP.iter().copied().cycle().take(nops).collect();
    long.extend(caller().0);
    for (at, part) in long.chunks(ROOM).enumerate() {
        page.write(number + at, part);
    }
    let rows: Vec<_> = caller()
        .1
        .iter()
        .map(|row| {
            let mut row = *row;
            row.offset += nops as u32;
            row
        })
        .collect();
    page.load_as(number, long.len(), &rows);
    let found = walks(&page, number);
    same(&found[0], &found[2], 1, &page);
    unwinders().unload(page.address(number), long.len() as u64);
}

/// It starts no process of its own, because it runs under the loader.
#[cfg(target_arch = "x86_64")]
#[test]
fn with_libunwind_1_8() {
    all_pass(trixie(), "libunwind::", "Libgcc", &["loaded_later"], 5);
}
