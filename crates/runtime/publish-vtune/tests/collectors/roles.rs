//! The programs that load a collector.
#![allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use publish_vtune::{Code, Inlined, Line, Options, Vtune};

use crate::refusing::{in_a_fork, with_allocations};

const HERE: &str = "/src/here.lang";
const LIB: &str = "/src/lib.lang";

pub const THREADS: u32 = 8;
pub const CODES: u32 = 200;

pub fn play(role: &str) {
    match role {
        "create" => create(),
        "codes" => codes(),
        "names" => names(),
        "places" => places(),
        "moves" => moves(),
        "threads" => threads(),
        "fork" => fork(),
        "fork amid work" => fork_amid_work(),
        "refused" => refused(),
        other => panic!("no role is called {other}"),
    }
}

fn publisher() -> Vtune {
    Vtune::create(Options::new().reporter(|why| panic!("{why}"))).unwrap()
}

/// Which files are mapped.
fn mapped() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut files: Vec<String> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|file| file.starts_with('/'))
        .map(str::to_owned)
        .collect();
    files.dedup();
    files
}

/// Prints the result, and how many more files are mapped.
fn create() {
    let before = mapped();
    let result = Vtune::create(Options::new());
    let more = mapped().iter().filter(|file| !before.contains(file)).count();
    match &result {
        Ok(_) => println!("ok; {more} files"),
        Err(error) => println!("{error}; absence: {}; {more} files", error.is_absence()),
    }
    if let Ok(vtune) = result {
        vtune.load(&Code::at(0x1000, 4).named("code"));
    }
}

/// Code with lines, and with calls that were inlined two deep.
fn described<'a>(address: u64, calls: &'a [Inlined<'a>], lines: &'a [Line<'a>]) -> Code<'a> {
    Code::at(address, 0x28).named("fib").lines(lines).inlined(calls)
}

const LINES: [Line<'static>; 6] = [
    Line::new(0, HERE, 1),
    Line::new(4, LIB, 20),
    Line::new(8, LIB, 30),
    Line::new(12, LIB, 21),
    Line::new(16, HERE, 2),
    Line::new(24, LIB, 22),
];

fn calls() -> [Inlined<'static>; 2] {
    [
        Inlined::new("outer", &[4..16, 24..28]).called_from(HERE, 7),
        Inlined::new("inner", &[8..12]).called_from(LIB, 25).within(0),
    ]
}

fn codes() {
    let vtune = Vtune::create(Options::new().module("a runtime")).unwrap();
    // The example of `jitprofiling.h`.
    let ranges = [(0, 2), (1, 4), (12, 2), (15, 1), (18, 30)];
    let lines = ranges.map(|(offset, line)| Line::new(offset, HERE, line));
    vtune.load(&Code::at(0x1000, 21).named("table").lines(&lines));
    vtune.load(&described(0x2000, &calls(), &LINES));
    vtune.load(&Code::at(0x3000, 16).named("plain"));
    vtune.unload(0x2000, 0x28);
    // Of other sizes, or unknown.
    vtune.unload(0x1000, 20);
    vtune.unload(0x2000, 0x28);
    vtune.unload(0x4000, 16);
    // Over the beginning of one code, and over the other one.
    vtune.load(&Code::at(0xff0, 0x14).named("over"));
    vtune.load(&Code::at(0x3000, 16).named("again"));
    vtune.unload(0x1000, 21);
    vtune.unload(0x3000, 16);
    vtune.unload(0xff0, 0x14);
}

fn names() {
    let vtune = publisher();
    let long = "n".repeat(100_000);
    let path = "p".repeat(5000);
    let load = |name: &[u8], path: &str| {
        let lines = [Line::new(0, path, 1)];
        vtune.load(&Code::at(0x1000, 4).named_bytes(name).lines(&lines));
    };
    load(b"a\0b\nc", "/a\0b");
    load(b"\xff\xfe\x80", "/with\nnewline");
    load(b"", "");
    load("größe".as_bytes(), &path);
    load(long.as_bytes(), "/a");
}

/// Sizes and addresses at the limits.
fn places() {
    let vtune = publisher();
    vtune.load(&Code::at(0, 16).named("nowhere"));
    vtune.load(&Code::at(0x1000, 0).named("nothing"));
    vtune.load(&Code::at(0x1000, u64::from(u32::MAX) + 100).named("large"));
    vtune.unload(0x1000, u64::from(u32::MAX) + 100);
    vtune.load(&Code::at(u64::MAX, u64::MAX).named("last"));
    vtune.unload(u64::MAX, u64::MAX);
}

fn moves() {
    let vtune = publisher();
    let calls = calls();
    vtune.load(&described(0x1000, &calls, &LINES));
    vtune.moved(0x1000, &described(0x2000, &calls, &LINES));
    vtune.unload(0x1000, 0x28);
    // Described in another way, and never loaded.
    vtune.moved(0x2000, &described(0x3000, &calls[..1], &[]));
    vtune.moved(0x8000, &Code::at(0x9000, 16).named("new"));
    vtune.unload(0x3000, 0x28);
}

fn threads() {
    let vtune = &publisher();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..CODES {
                    let address = u64::from(thread + 1) << 32 | u64::from(number) << 8;
                    vtune.load(&described(address, &calls(), &LINES));
                    if number % 2 == 0 {
                        vtune.unload(address, 0x28);
                    }
                }
            });
        }
    });
}

fn fork() {
    let vtune = publisher();
    vtune.load(&Code::at(0x1000, 16).named("before"));
    in_a_fork(|| {
        vtune.forked();
        vtune.load(&Code::at(0x2000, 16).named("child"));
        vtune.unload(0x1000, 16);
    });
    vtune.load(&Code::at(0x2000, 16).named("parent"));
    vtune.unload(0x1000, 16);
}

/// Forks while another thread is in the collector.
fn fork_amid_work() {
    let said = Mutex::new(String::new());
    let said: &'static Mutex<String> = Box::leak(Box::new(said));
    let options = Options::new().reporter(|why| said.lock().unwrap().push_str(why));
    let vtune = &Vtune::create(options).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| vtune.load(&Code::at(0x1000, 16).named("waits")));
        let log = std::env::var_os("COLLECTOR_LOG").unwrap();
        while !std::fs::read_to_string(&log).unwrap().contains("waits") {
            std::thread::sleep(Duration::from_millis(1));
        }
        in_a_fork(|| {
            vtune.forked();
            assert!(vtune.is_off());
            vtune.load(&Code::at(0x2000, 16).named("child"));
            vtune.unload(0x1000, 16);
            println!("{}", said.lock().unwrap());
        });
        assert!(!vtune.is_off());
        std::fs::write(std::env::var_os("COLLECTOR_GATE").unwrap(), "").unwrap();
    });
    vtune.unload(0x1000, 16);
}

/// With each allocation refused in turn, it gives up, and says so once.
fn refused() {
    static REPORTS: AtomicU32 = AtomicU32::new(0);
    let calls = calls();
    let mut granted = 0;
    loop {
        REPORTS.store(0, SeqCst);
        let mut created = None;
        let is_refused = with_allocations(granted, || {
            let options = Options::new().module("refused").reporter(|why| {
                assert!(why.contains("out of memory"));
                REPORTS.fetch_add(1, SeqCst);
            });
            created = Vtune::create(options).ok();
            if let Some(vtune) = &created {
                vtune.load(&described(0x1000, &calls, &LINES));
                vtune.moved(0x1000, &described(0x2000, &calls, &LINES));
                vtune.unload(0x2000, 0x28);
            }
        });
        let off = created.as_ref().map(Vtune::is_off);
        let reports = REPORTS.load(SeqCst);
        assert!(
            matches!((off, reports), (None | Some(false), 0) | (Some(true), 1)),
            "{off:?} {reports}"
        );
        if !is_refused {
            assert_eq!(off, Some(false));
            break;
        }
        // Nothing that was refused goes unnoticed.
        assert_ne!(off, Some(false), "after {granted} allocations");
        granted += 1;
    }
    println!("{granted}");
}
