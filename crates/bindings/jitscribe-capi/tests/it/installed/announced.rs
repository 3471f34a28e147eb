//! Another process reads what is announced in C.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use code_log::{Head, Snapshot};
use jitdump::extension::{Kind, control};
use jitdump::{CodeEvent, CodeLoad, Dump, LineEntry};

use crate::installed::running::Running;
use crate::installed::tree::{Link, compile};

/// A program that has announced its code and waits.
struct Program {
    running: Running,
    /// Address of its code.
    bytes: u64,
}

impl Program {
    fn start(mode: &str) -> Self {
        let program = compile("tests/c/announce.c", Link::Shared, &["-DMODES"]);
        let mut running = Running::spawn(program, &[mode], &[]);
        let ready = running.line();
        let bytes = ready.strip_prefix("ready ").expect("ready").parse().expect("an address");
        Self { running, bytes }
    }

    /// Its log, found as another process finds it.
    fn log(&self) -> PathBuf {
        let folder = format!("/proc/{}/fd", self.running.pid());
        let is_log = |path: &PathBuf| {
            std::fs::read_link(path).is_ok_and(|to| to.starts_with("/memfd:jitscribe (deleted)"))
        };
        std::fs::read_dir(folder)
            .expect("its files")
            .map(|entry| entry.expect("a file").path())
            .find(is_log)
            .expect("a log")
    }

    fn snapshot(&self) -> Snapshot {
        code_log::snapshot(&File::open(self.log()).expect("the log")).expect("a snapshot")
    }
}

fn codes(dump: &[u8]) -> Vec<CodeLoad<'_>> {
    let events = Dump::parse(dump).unwrap().codes().map(|event| event.unwrap());
    events
        .filter_map(|event| match event {
            CodeEvent::Load(code) => Some(code),
            _ => None,
        })
        .collect()
}

/// Offset, file, line and column.
fn told(line: LineEntry<'_>, code: &CodeLoad<'_>) -> (u64, String, u32, u32) {
    let file = String::from_utf8_lossy(line.file).into_owned();
    (line.address - code.address, file, line.line, line.column)
}

/// What `announce` announces.
fn are_all(codes: &[CodeLoad<'_>], bytes: u64) {
    let [all, before, moved, short] = codes else { panic!("{codes:?}") };
    assert_eq!((all.address, all.size, all.name), (bytes, 64, &b"all of it"[..]));
    assert_eq!((all.kind(), all.tier(), all.died()), (Kind::Stub, Some(&b"optimised"[..]), None));
    let one = || "/src/one.lang".to_owned();
    let two = || "/src/zwei.lang".to_owned();
    let lines: Vec<_> = all.lines().map(|line| told(line, all)).collect();
    assert_eq!(lines, [(0, one(), 7, 2), (4, two(), 100_000, 70_000), (9, one(), 8, 0)]);
    let ir_lines: Vec<_> = all.ir_lines().map(|line| told(line, all)).collect();
    assert_eq!(ir_lines, [(2, two(), 3, 0)]);
    let calls: Vec<_> = all.inlined().collect();
    let [outer, inner] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((outer.name, outer.parent), (&b"outer"[..], None));
    assert_eq!((outer.file, outer.line, outer.column), (one().as_bytes(), 7, 4));
    assert_eq!((inner.name, inner.parent), (&b"inner"[..], Some(0)));
    assert_eq!((inner.file, inner.line, inner.column), (two().as_bytes(), 9, 0));
    let ranges: Vec<_> = inner.ranges.clone().collect();
    assert_eq!(ranges, [bytes + 2..bytes + 5, bytes + 8..bytes + 12]);
    assert!(all.unwind().is_some_and(|unwind| !unwind.eh_frame.is_empty()), "{:?}", all.unwind());

    // A byte that is not UTF-8 is kept, a control character is not.
    assert_eq!((before.address, before.name), (0x70_0000, &b"a b\xff"[..]));
    assert_eq!((moved.address, moved.name), (0x71_0000, &b"a b\xff"[..]));
    assert!(before.died().is_some() && moved.died().is_none());
    assert_eq!((before.kind(), before.size), (Kind::Function, 6));

    assert_eq!((short.address, short.size, short.name), (0x72_0000, 128, &b"short life"[..]));
    assert!(short.died().is_some() && short.frame_pointer().is_some());
    assert_eq!(short.kind(), Kind::Other);
}

#[test]
fn all_fields_arrive() {
    let program = Program::start("lean");
    let snapshot = program.snapshot();
    let codes = codes(&snapshot.bytes);
    are_all(&codes, program.bytes);
    assert!(codes.iter().all(|code| code.is_without_bytes() && code.bytes.is_empty()));
    program.running.end();
}

#[test]
fn bytes_arrive_with_all_fields() {
    let program = Program::start("bytes");
    let snapshot = program.snapshot();
    let codes = codes(&snapshot.bytes);
    are_all(&codes, program.bytes);
    assert_eq!(codes[0].bytes[..6], [0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3]);
    assert_eq!(codes[0].bytes.len(), 64);
    assert_eq!(codes[1].bytes, [0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3]);
    assert!(codes[3].is_without_bytes(), "no bytes were given");
    program.running.end();
}

#[test]
fn code_is_replayed_when_the_log_is_turned_on_from_outside() {
    let mut program = Program::start("replay");
    assert_eq!(program.snapshot().codes, 0, "it is off");
    // The same as `jitscribe ctl -p PID on`.
    let log = File::options().write(true).open(program.log()).expect("the log");
    log.write_all_at(&(control::LOG | control::REQUEST).to_ne_bytes(), Head::CONTROL)
        .expect("room");
    assert_eq!(program.running.ask("poll"), "replays 1");
    assert_eq!(program.running.ask("poll"), "replays 1");
    are_all(&codes(&program.snapshot().bytes), program.bytes);
    program.running.end();
}
