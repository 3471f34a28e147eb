//! Threads of one process: for ThreadSanitizer (`scripts/sanitize.sh`), and without it for what they leave.
//!
//! `JITSCRIBE_THREADS_OPS` is how much each does; 20,000 unless set.
#![cfg(target_os = "linux")]

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::{assert_valid, builder, codes, living, log_file, raw, snapshot};
use jitdump::extension::control;
use jitscribe::{Code, Line, LoadedCode, Scribe};

const THREADS: u64 = 12;

fn work(scribe: Scribe, thread: u64, count: u64) -> usize {
    let bytes: Vec<u8> = (0..70_000_u32).map(|n| n as u8).collect();
    let lines = [0, 3, 9].map(|offset| Line::new(offset, "/src/f", 1));
    let mut random = thread + 1;
    let mut alive: Vec<u64> = Vec::new();
    for n in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = random >> 40;
        if alive.len() < 20 || (choice.is_multiple_of(2) && alive.len() < 60) {
            let size = if choice.is_multiple_of(1_000) { 70_000 } else { (choice % 300) as usize };
            let name = format!("code {thread} {n}");
            let address = 1 << 40 | thread << 32 | n << 4;
            let code = Code::new(&bytes[..size]).runs_at(address).named(&name).lines(&lines);
            alive.push(scribe.load(&code).into_raw());
        } else {
            let at = choice as usize % alive.len();
            let mut code = LoadedCode::from_raw(scribe, alive.swap_remove(at));
            if choice.is_multiple_of(3) {
                code.moved_to_address(2 << 40 | thread << 32 | n << 4);
                alive.push(code.into_raw());
            }
        }
        alive.retain(|raw| *raw != 0);
    }
    alive.len()
}

#[test]
fn a_thread_that_ends_releases_its_lane() {
    let count = std::env::var("JITSCRIBE_THREADS_OPS").ok().and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(20_000);
    for with_bytes in [false, true] {
        let scribe = builder(with_bytes).limit(3 << 20).build();
        let working = AtomicUsize::new(THREADS as usize);
        let alive: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let working = &working;
                    scope.spawn(move || {
                        let alive = work(scribe, thread, count);
                        working.fetch_sub(1, Relaxed);
                        alive
                    })
                })
                .collect();
            // Meanwhile someone outside asks for a perf map again and again: all that is alive is written to it.
            let log = log_file(scribe);
            let request = control::LOG
                | control::PERF_MAP
                | control::REQUEST
                | if with_bytes { control::BYTES } else { 0 };
            while working.load(Relaxed) > 0 {
                log.write_all_at(&request.to_ne_bytes(), code_log::Head::CONTROL).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert_eq!(snapshot(scribe).torn, 0);
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let snapshot = snapshot(scribe);
        let found = living(&codes(&snapshot.bytes)).len();
        assert_eq!((snapshot.torn, found), (0, alive));
        assert_valid(&snapshot.bytes);
        assert_valid(&raw(scribe));
    }
    let map = format!("/tmp/perf-{}.map", std::process::id());
    assert!(std::fs::read_to_string(&map).unwrap().lines().count() > 100);
    std::fs::remove_file(map).unwrap();
}

#[test]
fn unloading_a_code_twice_frees_its_space_once() {
    const ROUNDS: u64 = 200;
    const CODES: u64 = 300;
    // Space for some of them: chunks are reused depending on how many of their codes have died.
    let scribe = Scribe::builder().limit(1 << 20).build();
    let code = |n: u64| Code::at(n << 8, 100).named("of two threads");
    for round in 0..ROUNDS {
        scribe.load(&code(CODES * round)).leak();
        let doomed: Vec<u64> = (1..CODES)
            .map(|n| scribe.load(&code(CODES * round + n)).into_raw())
            .filter(|raw| *raw != 0)
            .collect();
        let start = std::sync::Barrier::new(2);
        let unload = || {
            start.wait();
            doomed.iter().for_each(|raw| drop(LoadedCode::from_raw(scribe, *raw)));
        };
        std::thread::scope(|scope| {
            scope.spawn(unload);
            unload();
        });
    }
    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    let alive: Vec<u64> = living(&codes).iter().map(|code| code.address >> 8).collect();
    assert_eq!(alive, (0..ROUNDS).map(|round| CODES * round).collect::<Vec<_>>());
    assert_eq!((snapshot.torn, snapshot.head.left_out), (0, 0));
}
