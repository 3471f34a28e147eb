//! Names addresses at every instant: as a signal handler does that interrupts an announcement between two accesses to the log.

use std::sync::atomic::Ordering::Relaxed;

use super::Log;
use super::layout::{CHUNK, FIRST_CHUNK, control};
use super::observed::{self, Instant, Known, Observed, Observer, log};
use jit_code::{Code, Inlined, Line};

fn name_at(log: &Log, code: &Known) -> Option<String> {
    let mut buffer = [0; 64];
    let symbol = log.symbolize(code.address + 5, 0, &mut buffer)?;
    assert!(!symbol.is_cut);
    assert_eq!((symbol.address, symbol.functions), (code.address, 1));
    assert_eq!((symbol.file, symbol.line), (&b"f"[..], 2), "{symbol:?}");
    Some(std::str::from_utf8(symbol.name).unwrap().to_owned())
}

/// Some of the codes are found, and those that may be there are found or not, but never as other ones.
#[derive(Default)]
struct Handler;

impl Observer for Handler {
    fn look(&mut self, &Instant { number, log, alive, perhaps, .. }: &Instant<'_>) {
        // The one that was announced first is found after reading everything.
        let some = (number as usize * 7) % alive.len().max(1);
        for code in alive.first().into_iter().chain(alive.get(some)) {
            assert_eq!(name_at(log, code), Some(code.name()), "instant {number}");
        }
        for code in perhaps {
            let name = name_at(log, code);
            assert!(name.is_none_or(|name| name == code.name()), "instant {number}");
        }
        assert_eq!(log.symbolize(7, 0, &mut []), None);
    }

    fn after(log: &Log, code: Known, is_there: bool) {
        assert_eq!(name_at(log, &code), is_there.then(|| code.name()));
    }
}

#[test]
fn announcements_may_be_interrupted_at_every_instant() {
    observed::announcements::<Handler>();
}

#[test]
fn reuse_of_space_may_be_interrupted_at_every_instant() {
    observed::reuse::<Handler>();
}

#[test]
fn joining_and_splitting_chunks_may_be_interrupted_at_every_instant() {
    observed::joining_and_splitting::<Handler>();
}

#[test]
fn the_copying_of_inherited_codes_may_be_interrupted_at_every_instant() {
    let mut test = Observed::<Handler>::new(6, true);
    for n in 1..30 {
        assert!(test.load(n << 20, 5_000));
    }
    for n in (4..20).step_by(3) {
        test.unload(n << 20);
    }
    test.adopt();
    let inherited = || test.log.mapping.half(control::INHERITED).load(Relaxed);
    assert_ne!(inherited(), 0, "the codes are shared");
    for (code, _) in test.handles.values() {
        Handler::after(&test.log, *code, true);
    }
    Handler::after(&test.log, Known::at(4 << 20), false);
    assert!(test.observed(&[], Log::copy_inherited));
    assert_eq!(inherited() & !1, 0);
    assert!(test.load(40 << 20, 5_000));
    test.unload(1 << 20);
    test.finish();
}

#[test]
fn the_code_that_was_announced_last_is_found() {
    let log = log(2);
    for name in ["old", "new"] {
        log.load(&Code::at(0x1000, 64).named(name), false, 1).unwrap();
    }
    // Inside of the others, and announced last.
    let inner = log.load(&Code::at(0x1010, 8).named("inner"), false, 1).unwrap();
    let name = |pc| {
        let mut buffer = [0; 16];
        log.symbolize(pc, 0, &mut buffer).map(|symbol| symbol.name.to_vec())
    };
    assert_eq!(name(0x100f), Some(b"new".to_vec()));
    assert_eq!(name(0x1010), Some(b"inner".to_vec()));
    assert_eq!(name(0x1017), Some(b"inner".to_vec()));
    assert_eq!(name(0x1018), Some(b"new".to_vec()));
    log.end(log.living(inner.0, inner.1).unwrap());
    assert_eq!(name(0x1010), Some(b"new".to_vec()));
    assert_eq!([name(0xfff), name(0x1040), name(u64::MAX), name(0)], [None, None, None, None]);
}

#[test]
fn moved_code_is_found_where_it_is() {
    for with_bytes in [false, true] {
        let log = log(2);
        let bytes = [0; 64];
        let lines = [Line::new(0, "f", 1), Line::new(8, "f", 2)];
        let code = Code::new(&bytes).runs_at(0x1000).named("moved").lines(&lines);
        let (position, index) = log.load(&code, with_bytes, 1).unwrap();
        log.move_to(position, index, 0x5000, None, 1).unwrap();
        log.end(log.living(position, index).unwrap());
        let mut buffer = [0; 16];
        assert_eq!(log.symbolize(0x1009, 0, &mut buffer), None);
        let symbol = log.symbolize(0x5009, 0, &mut buffer).unwrap();
        assert_eq!((symbol.name, symbol.address, symbol.line), (&b"moved"[..], 0x5000, 2));
    }
}

/// Name, file, line and column of each function at an address.
type Chain = Vec<(String, String, u32, u32)>;

fn chain(log: &Log, pc: u64) -> Chain {
    let mut chain = Vec::new();
    let mut buffer = [0; 128];
    for number in 0.. {
        let Some(symbol) = log.symbolize(pc, number, &mut buffer) else { break };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        chain.push((text(symbol.name), text(symbol.file), symbol.line, symbol.column));
        assert_eq!(log.symbolize(pc, 0, &mut [0; 128]).unwrap().functions, symbol.functions);
    }
    chain
}

#[test]
fn inlined_calls_are_found_from_the_innermost_outwards() {
    #[allow(clippy::single_range_in_vec_init)]
    let (outer, other) = ([8..40], [50..60]);
    let inner = [10..12, 20..24];
    let calls = [
        Inlined::new("outer", &outer).called_from("a", 7).column(3),
        Inlined::new("inner", &inner).called_from("b", 8).within(0),
        Inlined::new("other", &other).called_from("b", 9),
    ];
    let lines = [
        Line::new(0, "a", 1),
        Line::new(10, "c", 2).column(5),
        Line::new(12, "b", 3),
        Line::new(50, "d", 4),
        Line::new(55, "d", 5),
        Line::new(55, "d", 6),
    ];
    let row =
        |name: &str, file: &str, line, column| (name.to_owned(), file.to_owned(), line, column);
    for with_bytes in [false, true] {
        let log = log(2);
        let bytes = [0; 64];
        let code = Code::new(&bytes).runs_at(0x1000).named("code").tier("t");
        log.load(&code.lines(&lines).inlined(&calls), with_bytes, 1).unwrap();
        let expected: [(u64, Chain); 6] = [
            (0, vec![row("code", "a", 1, 0)]),
            (9, vec![row("outer", "a", 1, 0), row("code", "a", 7, 3)]),
            (11, vec![row("inner", "c", 2, 5), row("outer", "b", 8, 0), row("code", "a", 7, 3)]),
            (23, vec![row("inner", "b", 3, 0), row("outer", "b", 8, 0), row("code", "a", 7, 3)]),
            (59, vec![row("other", "d", 6, 0), row("code", "b", 9, 0)]),
            (63, vec![row("code", "d", 6, 0)]),
        ];
        for (offset, expected) in expected {
            assert_eq!(chain(&log, 0x1000 + offset), expected, "{offset} {with_bytes}");
        }
    }
}

#[test]
fn what_does_not_fit_into_the_buffer_is_cut_between_characters() {
    let log = log(1);
    let lines = [Line::new(0, "file", 1)];
    log.load(&Code::at(0x1000, 9).named("n\u{e4}me").lines(&lines), false, 1).unwrap();
    for (size, name, file, is_cut) in [
        (0, "", "", true),
        (1, "", "", true),
        (2, "n", "", true),
        (3, "n", "", true),
        (4, "n\u{e4}", "", true),
        (6, "n\u{e4}me", "", true),
        (9, "n\u{e4}me", "fi", true),
        (10, "n\u{e4}me", "fil", true),
        (11, "n\u{e4}me", "file", false),
    ] {
        let mut buffer = [1; 32];
        let symbol = log.symbolize(0x1000, 0, &mut buffer[..size]).unwrap();
        let found = (symbol.name, symbol.file, symbol.is_cut);
        assert_eq!(found, (name.as_bytes(), file.as_bytes(), is_cut), "{size}");
        assert!(buffer[size..].iter().all(|byte| *byte == 1), "{size}");
    }
}

/// Bytes that are not a log's give no panic, and no endless search.
#[test]
fn a_damaged_log_is_searched_to_its_end() {
    let log = log(2);
    for n in 0..300 {
        let lines = [Line::new(0, "file", 1)];
        log.load(&Code::at(n << 20, 9).named("name").lines(&lines), n % 2 == 0, 1).unwrap();
    }
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    for _ in 0..3_000 {
        let word = log.mapping.word(FIRST_CHUNK + 8 * (next() % (CHUNK / 8)));
        let value = match next() % 4 {
            0 => 0,
            1 => u64::MAX,
            2 => next() as u64,
            _ => word.load(Relaxed) ^ 1 << (next() % 64),
        };
        word.store(value, Relaxed);
        let mut buffer = [0; 40];
        for number in 0..3 {
            let _ = log.symbolize((next() as u64 % 310) << 20, number, &mut buffer);
        }
    }
}
