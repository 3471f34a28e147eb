//! Names addresses at every instant: as a signal handler does that interrupts an announcement between two accesses to the log.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use super::layout::{CHUNK, FIRST_CHUNK, chunk, control};
use super::mapping::observe;
use super::{Log, LogOptions, Position};
use crate::clock::Clock;
use jit_code::{Code, Inlined, Line};

fn log(chunks: usize) -> &'static Log {
    let limit = FIRST_CHUNK + chunks * CHUNK;
    let options =
        LogOptions { file: None, limit, control: 1, reuse: true, clock: Clock::Monotonic };
    let log = Log::create(options, |failure, _| panic!("{failure}")).unwrap();
    log.mapping.have(&log.backing, 0, limit).unwrap();
    Box::leak(Box::new(log))
}

fn name_at(log: &Log, pc: u64) -> Option<String> {
    let mut buffer = [0; 64];
    let symbol = log.symbolize(pc, 0, &mut buffer)?;
    assert!(!symbol.is_cut);
    assert_eq!((symbol.address, symbol.functions), (pc & !0xfffff, 1));
    assert_eq!((symbol.file, symbol.line), (&b"f"[..], 2), "{symbol:?}");
    Some(std::str::from_utf8(symbol.name).unwrap().to_owned())
}

/// A log, and the codes that are in it: each is announced by its address, a multiple of 1 MiB.
struct Test {
    log: &'static Log,
    with_bytes: bool,
    handles: BTreeMap<u64, (Position, u32)>,
    instants: Rc<Cell<u64>>,
    bytes: Vec<u8>,
}

impl Test {
    fn new(chunks: usize, with_bytes: bool) -> Self {
        let bytes = vec![0; 150_000];
        let instants = Rc::default();
        Self { log: log(chunks), with_bytes, handles: BTreeMap::new(), instants, bytes }
    }

    /// At each instant of `action`, some of the other codes are found, and `perhaps` are found or not, but never as other ones.
    fn observed<T>(&self, perhaps: &[u64], action: impl FnOnce(&Log) -> T) -> T {
        let alive: Vec<u64> =
            self.handles.keys().copied().filter(|known| !perhaps.contains(known)).collect();
        let perhaps = perhaps.to_vec();
        let (log, instants) = (self.log, self.instants.clone());
        let result = RefCell::new(None);
        observe::during(
            move |_| {
                let instant = instants.get();
                instants.set(instant + 1);
                // The one that was announced first is found after reading everything.
                let some = (instant as usize * 7) % alive.len().max(1);
                for address in alive.first().into_iter().chain(alive.get(some)) {
                    let name = name_at(log, address + 5);
                    assert_eq!(name, Some(format!("code {address:x}")), "instant {instant}");
                }
                for address in &perhaps {
                    if let Some(name) = name_at(log, address + 5) {
                        assert_eq!(name, format!("code {address:x}"), "instant {instant}");
                    }
                }
                assert_eq!(log.symbolize(7, 0, &mut []), None);
            },
            || *result.borrow_mut() = Some(action(self.log)),
        );
        result.into_inner().unwrap()
    }

    fn load(&mut self, address: u64, size: usize) -> bool {
        let name = format!("code {address:x}");
        let lines = [Line::new(0, "e", 1), Line::new(3, "f", 2), Line::new(6, "e", 3)];
        let code = Code::new(&self.bytes[..size]).runs_at(address).named(&name).lines(&lines);
        let with_bytes = self.with_bytes;
        let handle = self.observed(&[address], |log| log.load(&code, with_bytes, 1));
        if let Some(handle) = handle {
            self.handles.insert(address, handle);
            assert_eq!(name_at(self.log, address + 5), Some(name));
        }
        handle.is_some()
    }

    fn unload(&mut self, address: u64) {
        let (position, index) = self.handles[&address];
        self.observed(&[address], |log| log.end(log.living(position, index).unwrap()));
        self.handles.remove(&address);
        assert_eq!(name_at(self.log, address + 5), None);
    }
}

#[test]
fn announcements_may_be_interrupted_at_every_instant() {
    for with_bytes in [false, true] {
        let mut test = Test::new(2, with_bytes);
        for n in 1..40_u64 {
            assert!(test.load(n << 20, 100 + n as usize));
            if n % 3 == 0 {
                test.unload((n - 1) << 20);
            }
        }
        assert!(test.instants.get() > 500);
    }
}

#[test]
fn reuse_of_space_may_be_interrupted_at_every_instant() {
    for with_bytes in [false, true] {
        let mut test = Test::new(2, with_bytes);
        let mut next = 0;
        for round in 0..3_u64 {
            let before = next;
            while test.handles.len() < 13 {
                next += 1;
                if !test.load(next << 20, 9_000) {
                    break;
                }
                // Without bytes, codes take little space.
                for _ in 0..if with_bytes { 0 } else { 300 } {
                    let code = Code::at(1, 1).named("filling");
                    let Some((position, index)) = test.log.load(&code, false, 1) else { break };
                    test.log.end(test.log.living(position, index).unwrap());
                }
            }
            assert!(next > before, "round {round}");
            let doomed: Vec<u64> = test.handles.keys().copied().collect();
            for (n, address) in doomed.into_iter().enumerate() {
                if n as u64 % 4 != round {
                    test.unload(address);
                }
            }
        }
        let epoch = |number| test.log.mapping.word(FIRST_CHUNK + number * CHUNK + chunk::EPOCH);
        assert!((0..2).any(|number| epoch(number).load(Relaxed) > 0), "no space was reused");
        assert!(test.instants.get() > 500, "{}", test.instants.get());
    }
}

#[test]
fn joining_and_splitting_chunks_may_be_interrupted_at_every_instant() {
    let mut test = Test::new(5, true);
    assert!(test.load(1 << 20, 1_000));
    assert!(test.load(2 << 20, 150_000));
    assert!(test.load(3 << 20, 50_000));
    let mut run = 2 << 20;
    for round in 1..4_u64 {
        test.unload(run);
        let base = round << 30;
        let small: Vec<u64> = (0..12).map(|n| base + (n << 20)).collect();
        let small: Vec<u64> =
            small.into_iter().filter(|address| test.load(*address, 12_000)).collect();
        assert!(small.len() > 8, "{} in round {round}", small.len());
        small.into_iter().for_each(|address| test.unload(address));
        run = base + (90 << 20);
        assert!(test.load(run, 120_000), "round {round}");
    }
    assert!(test.instants.get() > 500);
}

/// The child of a fork, as one process.
#[test]
fn the_copying_of_inherited_codes_may_be_interrupted_at_every_instant() {
    let mut test = Test::new(6, true);
    for n in 1..30 {
        assert!(test.load(n << 20, 5_000));
    }
    for n in (4..20).step_by(3) {
        test.unload(n << 20);
    }
    let limit = test.log.mapping.size();
    test.log.adopt(99, true).unwrap();
    test.log.mapping.have(&test.log.backing, 0, limit).unwrap();
    assert!(test.log.mapping.half(control::INHERITED).load(Relaxed) != 0, "the codes are shared");
    for address in test.handles.keys() {
        assert_eq!(name_at(test.log, address + 5), Some(format!("code {address:x}")));
    }
    assert_eq!(name_at(test.log, (4 << 20) + 5), None);
    assert!(test.observed(&[], Log::copy_inherited));
    assert!(test.instants.get() > 500);
    assert_eq!(test.log.mapping.half(control::INHERITED).load(Relaxed) & !1, 0);
    assert!(test.load(40 << 20, 5_000));
    test.unload(1 << 20);
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
            assert_eq!(chain(log, 0x1000 + offset), expected, "{offset} {with_bytes}");
        }
    }
}

#[test]
fn what_does_not_fit_into_the_buffer_is_cut_between_characters() {
    let log = log(1);
    let lines = [Line::new(0, "file", 1)];
    log.load(&Code::at(0x1000, 9).named("n\u{e4}me").lines(&lines), false, 1).unwrap();
    let cut = |size: usize| {
        let mut buffer = [1; 32];
        let symbol = log.symbolize(0x1000, 0, &mut buffer[..size]).unwrap();
        let texts =
            [symbol.name, symbol.file].map(|text| String::from_utf8(text.to_vec()).unwrap());
        let is_cut = symbol.is_cut;
        assert!(buffer[size..].iter().all(|byte| *byte == 1), "{size}");
        (texts, is_cut)
    };
    let texts = |name: &str, file: &str| [name.to_owned(), file.to_owned()];
    assert_eq!(cut(0), (texts("", ""), true));
    assert_eq!(cut(1), (texts("", ""), true));
    assert_eq!(cut(2), (texts("n", ""), true));
    assert_eq!(cut(3), (texts("n", ""), true));
    assert_eq!(cut(4), (texts("n\u{e4}", ""), true));
    assert_eq!(cut(6), (texts("n\u{e4}me", ""), true));
    assert_eq!(cut(9), (texts("n\u{e4}me", "fi"), true));
    assert_eq!(cut(10), (texts("n\u{e4}me", "fil"), true));
    assert_eq!(cut(11), (texts("n\u{e4}me", "file"), false));
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
