//! Fails every single allocation in turn: the process lives, what is left out is reported, and the log continues to work.
//!
//! Each case runs in a child process again and again, with the first allocation of the library refused, then the second,
//! and so on until it makes no more; once with all later ones refused too, once with them granted.
#![allow(unsafe_code, clippy::print_stderr, clippy::exit)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use jitdump::extension::control;
use jitscribe::objects::{self, ObjectFormat};
use jitscribe::{
    Builder, Code, Inlined, Kind, Line, LoadedCode, Mode, Row, Scribe, Subject, Unwind, arena,
};

/// The allocator that refuses.
struct Refusing;

#[derive(Clone, Copy, PartialEq)]
enum Grant {
    Granted,
    /// So many are granted, the next is refused, and all behind it are granted.
    One(u32),
    /// So many are granted, and none behind them.
    All(u32),
}

thread_local! {
    static MODE: Cell<Grant> = const { Cell::new(Grant::Granted) };
    static REFUSED: Cell<u32> = const { Cell::new(0) };
}

impl Refusing {
    fn grants() -> bool {
        let (grants, next) = match MODE.get() {
            Grant::Granted => return true,
            Grant::One(0) => (false, Grant::Granted),
            Grant::One(left) => (true, Grant::One(left - 1)),
            Grant::All(0) => (false, Grant::All(0)),
            Grant::All(left) => (true, Grant::All(left - 1)),
        };
        MODE.set(next);
        REFUSED.set(REFUSED.get() + u32::from(!grants));
        grants
    }
}

// SAFETY: the system's allocator, which may refuse.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if Self::grants() { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::grants() {
            // SAFETY: the caller's promise.
            unsafe { System.realloc(at, layout, size) }
        } else {
            std::ptr::null_mut()
        }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Does something with allocations refused; whether any was.
fn refused<R>(mode: Grant, work: impl FnOnce() -> R) -> (R, bool) {
    REFUSED.set(0);
    MODE.set(mode);
    let done = work();
    MODE.set(Grant::Granted);
    (done, REFUSED.get() > 0)
}

static NOTICES: AtomicU32 = AtomicU32::new(0);
static OF_MEMORY: AtomicU32 = AtomicU32::new(0);

/// Counts notices, and takes no memory for it.
fn listen(notice: &jitscribe::Notice) {
    struct Finds(bool);
    impl std::fmt::Write for Finds {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 |= text.contains("memory") || text.contains("Cannot allocate");
            Ok(())
        }
    }
    let mut finds = Finds(false);
    let _ = std::fmt::write(&mut finds, format_args!("{notice}"));
    NOTICES.fetch_add(1, Relaxed);
    if finds.0 {
        OF_MEMORY.fetch_add(1, Relaxed);
    }
    let _: Subject = notice.subject();
}

static BYTES: [u8; 4096] = [0xc3; 4096];

/// Code of every kind. The last one has the most tables.
fn codes(announce: &mut dyn FnMut(&Code<'_>)) {
    const FILES: [&str; 12] = [
        "/a/0", "/a/1", "/a/2", "/b/3", "/b/4", "/c/5", "/c/6", "/d/7", "/d/8", "/e/9", "/f/10",
        "/g/11",
    ];
    let line = |number: usize| {
        Line::new(number as u32 * 4, FILES[number % FILES.len()], 1 + number as u32 * 1000)
            .column(number as u32)
    };
    let lines: [Line<'_>; 40] = std::array::from_fn(line);
    let backwards: [Line<'_>; 40] = std::array::from_fn(|number| line(39 - number));
    let ranges = [0..64, 100..160];
    let call = |ranges| Inlined::new("inner\n", ranges).called_from("/a/0", 7).column(1);
    let calls = [call(&ranges[..]), call(&ranges[1..]).within(0)];
    let saved: [(u16, i32); 5] = [(3, -16), (12, -24), (13, -32), (14, -40), (15, -48)];
    let rows: [Row<'_>; 20] = std::array::from_fn(|number| {
        Row::new(number as u32 * 8, 7, 8 + 8 * number as i32).saved(&saved[..number % 6])
    });
    let long = [b'x'; 3000];
    let plain = |at: usize| Code::new(&BYTES[at * 200..at * 200 + 200]);
    announce(&plain(0).named("plain"));
    announce(&plain(1).named("lines").lines(&lines));
    announce(&plain(2).named("backwards\u{1b}").lines(&backwards).ir_lines(&lines));
    announce(&plain(3).named("inlined").inlined(&calls).lines(&lines).tier("optimised"));
    announce(&plain(4).named("rows").unwind(Unwind::Rows(&rows)));
    announce(&plain(5).named("frame pointer").unwind(Unwind::FRAME_POINTER));
    announce(&plain(6).named_bytes(&long).kind(Kind::Other));
    announce(&plain(7).named_bytes(b"\xff\xfe broken"));
    // Over others.
    announce(&Code::new(&BYTES[100..700]).named("over").lines(&lines).unwind(Unwind::Rows(&rows)));
    // Enough for debuggers' files to be joined.
    for number in 0..40 {
        announce(&Code::at(0x10_0000 + number * 64, 64).named("many"));
    }
}

type Settings = fn(Builder, &Path) -> Builder;

const SETTINGS: [(&str, Settings); 8] = [
    ("log", |builder, _| builder),
    ("bytes", |builder, _| builder.bytes()),
    ("perf-map", |builder, dir| builder.perf_map(Mode::On).perf_map_dir(dir)),
    ("gdb", |builder, _| builder.gdb(Mode::On)),
    ("crash", |builder, _| builder.gdb_on_crash().control_thread()),
    ("unwinders", |builder, _| builder.bytes().unwinders(Mode::On)),
    ("jitdump", |builder, dir| builder.jitdump(Mode::On).dir(dir)),
    ("all", |builder, dir| {
        builder
            .jitdump(Mode::On)
            .dir(dir)
            .perf_map(Mode::On)
            .perf_map_dir(dir)
            .gdb(Mode::On)
            .gdb_synchronous()
            .unwinders(Mode::On)
    }),
];

fn open(settings: Settings, dir: &Path) -> Scribe {
    settings(Scribe::builder(), dir).valgrind(Mode::Off).notice(listen).build()
}

/// An operation under failing allocations. Its argument makes allocations fail; it returns whether any failed.
type Case = fn(Settings, &Path, Grant) -> bool;

const CASES: [(&str, Case); 9] = [
    ("open", |settings, dir, mode| {
        let owned = dir.to_owned();
        let (scribe, was) = refused(mode, || open(settings, &owned));
        // It is off, or takes what is announced from now on.
        assert!(!scribe.is_on() || announces(scribe));
        assert!(scribe.is_on() || OF_MEMORY.load(Relaxed) > 0, "off, and nothing said");
        was
    }),
    ("environment", |_, _, mode| {
        let (scribe, was) =
            refused(mode, || Scribe::builder().environment().notice(listen).build());
        assert!(!scribe.is_on() || announces(scribe));
        was
    }),
    ("load", |settings, dir, mode| {
        let scribe = open(settings, dir);
        let before = OF_MEMORY.load(Relaxed);
        let mut left_out = 0;
        let ((), was) = refused(mode, || {
            codes(&mut |code| left_out += u32::from(scribe.load(code).into_raw() == 0));
        });
        assert!(left_out == 0 || OF_MEMORY.load(Relaxed) > before, "left out, and nothing said");
        assert!(announces(scribe));
        was
    }),
    ("moved", |settings, dir, mode| {
        let scribe = open(settings, dir);
        let mut loaded: Vec<LoadedCode> = Vec::with_capacity(64);
        codes(&mut |code| loaded.push(scribe.load(code)));
        let ((), was) = refused(mode, || {
            for (number, code) in loaded.iter_mut().enumerate() {
                code.moved_to_address(0x2000_0000 + number as u64 * 4096);
            }
        });
        assert!(announces(scribe));
        was
    }),
    ("unload", |settings, dir, mode| {
        let scribe = open(settings, dir);
        let mut loaded: Vec<LoadedCode> = Vec::with_capacity(64);
        codes(&mut |code| loaded.push(scribe.load(code)));
        let ((), was) = refused(mode, || loaded.clear());
        assert!(announces(scribe));
        was
    }),
    ("fork", |settings, dir, mode| {
        let scribe = open(settings, dir);
        codes(&mut |code| scribe.load(code).leak());
        // This process becomes the child of one that waits for it.
        in_child(|| {
            let (handle, was) = refused(mode, || {
                let code = Code::new(&BYTES[4000..4090]).named("child");
                scribe.load(&code).into_raw()
            });
            assert!(handle != 0 || OF_MEMORY.load(Relaxed) > 0, "left out, and nothing said");
            was
        })
    }),
    ("poll", |_, dir, mode| {
        let scribe = Scribe::builder().valgrind(Mode::Off).notice(listen).build();
        codes(&mut |code| scribe.load(code).leak());
        let _ = dir;
        ask(scribe, control::LOG | control::GDB | control::REQUEST);
        let ((), was) = refused(mode, || scribe.poll());
        assert!(announces(scribe));
        was
    }),
    ("object", |_, dir, mode| {
        let scribe = Scribe::builder().valgrind(Mode::Off).notice(listen).build();
        codes(&mut |code| scribe.load(code).leak());
        let path = dir.join(format!("object-{}", std::process::id()));
        let (_, was) = refused(mode, || objects::write(&scribe, ObjectFormat::Elf, &path).is_ok());
        let _ = std::fs::remove_file(path);
        assert!(announces(scribe));
        was
    }),
    ("arena", |settings, dir, mode| {
        let scribe = settings(Scribe::builder(), dir).dir(dir).valgrind(Mode::Off);
        let scribe = scribe.notice(listen).build();
        let ((), was) = refused(mode, || {
            let arena = arena::open_with(&scribe, |options| options.segment(1 << 20).removed());
            let Some(arena) = arena else { return };
            let mut kept: [Option<_>; 8] = [const { None }; 8];
            for number in 0..24 {
                let Some(mut draft) = arena.allocate(200 + number, 16) else { continue };
                draft.bytes_mut().fill(0xc3);
                let address = draft.address();
                kept[number % 8] = Some(draft.finish());
                let lines = [Line::new(4, "/a/b", 7).column(1); 2];
                let code = Code::at(address, 100).named("in an arena").lines(&lines);
                let code = scribe.load(&code.unwind(Unwind::FRAME_POINTER));
                if number % 3 == 0 {
                    code.leak();
                }
            }
        });
        assert!(announces(scribe));
        was
    }),
];

/// Whether an announcement, with memory back, is written.
fn announces(scribe: Scribe) -> bool {
    let code = Code::new(&BYTES[4000..4090]).named("later");
    !scribe.is_on() || scribe.load(&code).into_raw() != 0
}

/// Asks for something as `jitscribe ctl` does.
fn ask(scribe: Scribe, request: u32) {
    use std::os::unix::fs::FileExt;
    let log = scribe.log_fd().expect("a log").try_clone_to_owned().unwrap();
    std::fs::File::from(log).write_all_at(&request.to_ne_bytes(), code_log::Head::CONTROL).unwrap();
}

const MORE: i32 = 3;
const DONE: i32 = 4;

/// Does it in a child of fork; whether memory was refused there.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: this process has threads of the library's at most, none of which has a lock that the child needs.
    match unsafe { libc::fork() } {
        0 => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let code = match done {
                Ok(true) => MORE,
                Ok(false) => DONE,
                Err(_) => 101,
            };
            // SAFETY: nothing of the parent's is to be ended.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the status is written to the given place.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert!(libc::WIFEXITED(status), "died of signal {}", libc::WTERMSIG(status));
            match libc::WEXITSTATUS(status) {
                MORE => true,
                DONE => false,
                other => panic!("ended with {other}"),
            }
        }
    }
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: there is one thread.
    unsafe {
        std::env::set_var(
            "JITSCRIBE",
            "bytes,perf-map,gdb,no-such-word,jitdump,unwinders,valgrind=off",
        );
        std::env::set_var("JITSCRIBE_DIR", folder.path());
        std::env::set_var("JITSCRIBE_LIMIT", "none at all");
    }
    let mut failures = 0;
    // A child takes a hundred times as long under QEMU.
    let step = if std::env::var_os("QEMU_LD_PREFIX").is_some() { 7 } else { 1 };
    for (case, run) in CASES {
        for (name, settings) in SETTINGS {
            let label = format!("{case}/{name}");
            // These have settings of their own.
            let is_once = ["environment", "poll", "object"].contains(&case) && name != "log";
            if is_once || (!wanted.is_empty() && !wanted.iter().any(|word| label.contains(word))) {
                continue;
            }
            let mut allocations = 0;
            for mode in [Grant::One as fn(u32) -> Grant, Grant::All] {
                for granted in (0..).step_by(step) {
                    let done = std::panic::catch_unwind(|| {
                        in_child(|| run(settings, folder.path(), mode(granted)))
                    });
                    match done {
                        Ok(true) => {}
                        Ok(false) => {
                            allocations = granted;
                            break;
                        }
                        Err(_) => {
                            let kind = if mode(0) == Grant::One(0) { "one" } else { "all" };
                            eprintln!("FAILED: {label}: refused behind {granted} ({kind})");
                            failures += 1;
                            break;
                        }
                    }
                    assert!(granted < 20_000, "{label}: no end");
                }
            }
            println_result(&label, allocations, step);
        }
    }
    assert_eq!(failures, 0, "the process died, or went on without a word");
}

#[allow(clippy::print_stdout)]
fn println_result(label: &str, allocations: u32, step: usize) {
    println!("{label}: {allocations} allocations, refused in steps of {step}");
}
