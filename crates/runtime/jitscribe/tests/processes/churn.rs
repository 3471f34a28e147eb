//! A day of a busy runtime in little time: the same addresses get new code over and over, and memory stays
//! within the limit.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use jitscribe::{Code, Line, LoadedCode, Scribe};

use crate::Test;
use crate::logs::{loads, own_log, own_snapshot, player};

pub const TESTS: &[Test] = &[("churn_stays_within_the_limit", churn)];

const THREADS: u64 = 2;
/// Codes that each thread keeps alive.
const ALIVE: u64 = 20_000;
const LIMIT: u64 = 32 << 20;
/// How much the process's other memory may grow once all is in use, in KiB.
const MAY_GROW: u64 = 1_024;

fn churn() {
    let count = std::env::var("JITSCRIBE_CHURN").unwrap_or_else(|_| "2000000".to_owned());
    let status = player("churn", &[&count]).status().unwrap();
    assert!(status.success(), "{status}");
}

fn name(address: u64, n: u64) -> String {
    format!("f{address:x} of {n}, {}", "x".repeat((n % 30) as usize))
}

fn address(thread: u64, slot: u64) -> u64 {
    1 << 40 | thread << 32 | (slot << 8)
}

pub fn play(arguments: &[&str]) {
    let [count] = arguments else { panic!("{arguments:?}") };
    let each: u64 = count.parse::<u64>().unwrap() / THREADS;
    let scribe = Scribe::builder().limit(LIMIT as usize).build();
    let run = |thread: u64| {
        let lines: [Line<'_>; 12] = std::array::from_fn(|n| {
            Line::new(4 * n as u32, "/src/churn.lang", 100 + n as u32).column(7)
        });
        let mut alive: Vec<u64> = vec![0; ALIVE as usize];
        let mut settled = None;
        for n in 0..each {
            let slot = n % ALIVE;
            let old = std::mem::take(&mut alive[slot as usize]);
            drop(LoadedCode::from_raw(scribe, old));
            let address = address(thread, slot);
            let code = Code::at(address, 200).runs_at(address);
            let name = name(address, n);
            alive[slot as usize] = scribe.load(&code.named(&name).lines(&lines)).into_raw();
            if thread == 0 && n % (each / 20) == each / 20 - 1 {
                let (memory, log) = (private_memory(), log_size(scribe));
                assert!(log <= LIMIT, "the log takes {log} bytes");
                let before = *settled.get_or_insert(memory);
                assert!(memory <= before + MAY_GROW, "{memory} KiB, {before} before");
            }
        }
        alive
    };
    let start = Instant::now();
    let alive: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        let alive = threads.into_iter().map(|thread| thread.join().unwrap());
        alive.map(|alive| alive.iter().filter(|raw| **raw != 0).count() as u64).sum()
    });
    let seconds = start.elapsed().as_secs_f64();
    let rest = private_memory();
    let snapshot = own_snapshot(scribe);
    assert_eq!((snapshot.torn, snapshot.head.left_out), (0, 0));
    let mut found = 0;
    for code in loads(&snapshot.bytes).filter(|code| code.died().is_none()) {
        found += 1;
        let (thread, slot) = (code.address >> 32 & 0xff, (code.address & 0xffff_ffff) / 256);
        // The last that this slot had.
        let last = (each - 1 - slot) / ALIVE * ALIVE + slot;
        assert_eq!(code.address, address(thread, slot));
        assert_eq!(code.name, name(code.address, last).as_bytes());
        assert_eq!(code.lines().count(), 12);
    }
    assert_eq!((found, alive), (THREADS * ALIVE, THREADS * ALIVE));
    println!(
        "{} announcements and deaths in {seconds:.1} s, {:.0} ns each; {found} alive; the log takes {} KiB of {}, \
         the rest of the process {} KiB",
        each * THREADS,
        seconds * 1e9 / (each * THREADS) as f64,
        log_size(scribe) >> 10,
        LIMIT >> 10,
        rest,
    );
}

/// Bytes of memory behind the log's file.
fn log_size(scribe: Scribe) -> u64 {
    own_log(scribe).metadata().unwrap().blocks() * 512
}

/// KiB of memory that the process has for itself.
fn private_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
