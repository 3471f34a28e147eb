//! The log against a naive model: whatever is announced, moved and unloaded, what an outsider reads is what
//! a plain map would hold, and what it could not hold is counted.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;

use crate::common::{assert_valid, builder, codes, living, raw, snapshot};
use jitscribe::{Code, Line, LoadedCode, Mode, Scribe};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Clone, Debug)]
enum Step {
    Load {
        name: usize,
        lines: usize,
        bytes: usize,
    },
    Unload(Index),
    Move(Index),
    /// Many die at once, which frees space of all sizes.
    UnloadEvery(usize),
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![
        20 => 0..300_usize,
        4 => 4_000..20_000_usize,
        // Sizes about that of a chunk, and more.
        1 => 60_000..70_000_usize,
        1 => 100_000..300_000_usize,
    ];
    let step = prop_oneof![
        20 => (0..200_usize, 0..8_usize, bytes)
            .prop_map(|(name, lines, bytes)| Step::Load { name, lines, bytes }),
        10 => any::<Index>().prop_map(Step::Unload),
        4 => any::<Index>().prop_map(Step::Move),
        1 => (1..5_usize).prop_map(Step::UnloadEvery),
        1 => Just(Step::Look),
    ];
    proptest::collection::vec(step, 1..600)
}

/// What is known of a code that was written.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    name: String,
    lines: usize,
    bytes: Vec<u8>,
}

struct Model {
    scribe: Scribe,
    limit: usize,
    with_bytes: bool,
    alive: BTreeMap<u64, (u64, Known)>,
    dead: BTreeMap<u64, Known>,
    /// Where moved codes are, by where they were.
    moved: BTreeMap<u64, u64>,
    left_out: u64,
    next: u64,
}

const FILES: [&str; 3] = ["/src/a", "/src/a/longer/path", "b"];

fn lines(count: usize) -> Vec<Line<'static>> {
    let line = |n: usize| Line::new(n as u32, FILES[n % 3], n as u32 + 1).column(n as u32);
    (0..count).map(line).collect()
}

impl Model {
    /// A code has its place for itself, for ever, so that the model needs no other key.
    fn next_address(&mut self) -> u64 {
        self.next += 1 << 20;
        self.next
    }

    fn load(&mut self, name: usize, count: usize, size: usize) {
        let address = self.next_address();
        let name = format!("{address:x} {}", "n".repeat(name));
        let bytes: Vec<u8> = (0..size + 8).map(|n| (n as u64 ^ address >> 20) as u8).collect();
        let table = lines(count);
        let code = Code::new(&bytes).runs_at(address).named(&name).lines(&table).tier("t");
        let raw = self.scribe.load(&code).into_raw();
        self.took(raw, address, Known { name, lines: count, bytes });
    }

    fn took(&mut self, raw: u64, address: u64, known: Known) {
        if raw == 0 {
            self.left_out += 1;
        } else {
            self.alive.insert(address, (raw, known));
        }
    }

    fn unload(&mut self, address: u64) {
        let Some((raw, known)) = self.alive.remove(&address) else { return };
        drop(LoadedCode::from_raw(self.scribe, raw));
        self.dead.insert(address, known);
    }

    fn move_one(&mut self, address: u64) {
        let Some((raw, known)) = self.alive.remove(&address) else { return };
        self.dead.insert(address, known.clone());
        let mut code = LoadedCode::from_raw(self.scribe, raw);
        let to = self.next_address();
        code.moved_to_address(to);
        self.moved.insert(address, to);
        self.took(code.into_raw(), to, known);
    }

    fn nth(&self, index: Index) -> Option<u64> {
        let count = self.alive.len();
        (count > 0).then(|| *self.alive.keys().nth(index.index(count)).unwrap())
    }

    fn look(&self) {
        let snapshot = snapshot(self.scribe);
        assert_eq!((snapshot.torn, snapshot.head.left_out), (0, self.left_out));
        assert!(snapshot.bytes.len() <= self.limit);
        let mut alive = 0;
        let codes = codes(&snapshot.bytes);
        let loaded: BTreeMap<u64, u64> =
            codes.iter().map(|code| (code.address, code.timestamp)).collect();
        for code in codes {
            // A moved code is there before it is gone.
            let moved = self.moved.get(&code.address).and_then(|to| loaded.get(to));
            assert!(moved.is_none_or(|loaded| code.died() >= Some(*loaded)));
            let is_dead = code.died().is_some();
            let known = if is_dead {
                self.dead.get(&code.address)
            } else {
                alive += 1;
                self.alive.get(&code.address).map(|(_, known)| known)
            };
            let known = known.unwrap_or_else(|| panic!("{code:?}"));
            assert_eq!((code.name, code.tier()), (known.name.as_bytes(), Some(&b"t"[..])));
            assert_eq!(code.size, known.bytes.len() as u64);
            if self.with_bytes {
                assert!(code.bytes == known.bytes);
            }
            let expected = lines(known.lines);
            let found: Vec<_> = code.lines().collect();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(found.address, code.address + u64::from(expected.offset));
                assert_eq!((found.file, found.line), (expected.file, expected.line));
            }
        }
        assert_eq!(alive, self.alive.len());
        assert_valid(&snapshot.bytes);
        assert_valid(&raw(self.scribe));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_agrees_with_a_map(
        steps in steps(),
        limit in prop_oneof![Just(80_000_usize), Just(300_000), Just(1_500_000)],
        with_bytes in any::<bool>(),
    ) {
        let mut model = Model {
            scribe: builder(with_bytes).limit(limit).build(),
            limit,
            with_bytes,
            alive: BTreeMap::new(),
            dead: BTreeMap::new(),
            moved: BTreeMap::new(),
            left_out: 0,
            next: 0,
        };
        for step in steps {
            match step {
                Step::Load { name, lines, bytes } => model.load(name, lines, bytes),
                Step::Unload(index) => if let Some(address) = model.nth(index) {
                    model.unload(address);
                },
                Step::Move(index) => if let Some(address) = model.nth(index) {
                    model.move_one(address);
                },
                Step::UnloadEvery(nth) => {
                    let doomed: Vec<u64> = model.alive.keys().copied().step_by(nth).collect();
                    doomed.into_iter().for_each(|address| model.unload(address));
                }
                Step::Look => model.look(),
            }
        }
        model.look();
    }
}

#[test]
fn a_fragmented_log_leaves_out_larger_codes_only() {
    // Every second code dies: half of the space is free, in pieces that are too small for a large code.
    let scribe = Scribe::builder().limit(1 << 20).build();
    let mut kept = Vec::new();
    for n in 0.. {
        let raw = scribe.load(&Code::at(0x1000 + n, 1).named("small")).into_raw();
        if raw == 0 {
            break;
        }
        kept.push(raw);
    }
    let (dead, alive): (Vec<_>, Vec<_>) =
        kept.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
    for (_, raw) in dead {
        drop(LoadedCode::from_raw(scribe, raw));
    }
    let name = "large".repeat(4_000);
    for n in 0..100 {
        assert_eq!(scribe.load(&Code::at(0x9_0000 + n, 1).named(&name)).into_raw(), 0);
    }
    let mut found = 0;
    for n in 0..1_000 {
        let raw = scribe.load(&Code::at(0xa_0000 + n, 1).named("small")).into_raw();
        found += u64::from(raw != 0);
    }
    assert!(found > 900, "{found}");
    let snapshot = snapshot(scribe);
    assert_eq!(snapshot.torn, 0);
    let living = living(&codes(&snapshot.bytes)).len();
    assert_eq!(living, alive.len() + found as usize);
}

/// Runtimes mix handles up. Those of no code are stale, wherever the log is; behind its end, a file has no memory.
#[test]
fn numbers_that_are_no_handles_are_stale() {
    let folder = tempfile::tempdir().unwrap();
    for builder in [Scribe::builder(), Scribe::builder().jitdump(Mode::On).dir(folder.path())] {
        let scribe = builder.build();
        let raw = scribe.load(&Code::at(0x1000, 16).named("f")).into_raw();
        let (position, index) = (raw >> 32, raw & 0xffff_ffff);
        let near = (1..position + 4096).filter(|at| *at != position);
        let far = (12..32).flat_map(|bit| [1 << bit, (1 << bit) + 1, (2 << bit) - 1]);
        for at in near.chain(far) {
            for index in [index, 0, 1, u64::from(u32::MAX)] {
                let made_up = at << 32 | index;
                assert!(LoadedCode::from_raw(scribe, made_up).is_stale(), "{made_up:x}");
                let mut moved = LoadedCode::from_raw(scribe, made_up);
                moved.moved_to_address(0x2000);
                assert!(!moved.unload(), "{made_up:x}");
            }
        }
        assert!(LoadedCode::from_raw(scribe, raw).unload());
    }
}
