//! Any events, and a memory that they change byte by byte.

use code_index::{AddressSpaceId, CodeIndex, JITDUMP};
use jitdump::ExtendedCode;
use proptest::prelude::*;

use crate::dumps::Made;

const ONE: AddressSpaceId = AddressSpaceId::ONLY;
const BASE: u64 = 0x10_0000;
const SIZE: usize = 64;

/// What happens at a time. Offsets are from [`BASE`].
#[derive(Clone, Copy, Debug)]
enum Happening {
    Load {
        at: u64,
        size: usize,
        lives: Option<u64>,
    },
    /// The code that was loaded as this number, if it is still somewhere.
    Move {
        which: usize,
        to: u64,
    },
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let load = (0..40_u64, 1..12_usize, prop::option::of(0..8_u64))
        .prop_map(|(at, size, lives)| Happening::Load { at, size, lives });
    let moved = (0..10_usize, 0..40_u64).prop_map(|(which, to)| Happening::Move { which, to });
    prop::collection::vec(prop_oneof![3 => load, 1 => moved], 0..24)
}

/// A code of the model.
#[derive(Clone, Copy)]
struct Code {
    at: u64,
    size: usize,
    dies: Option<u64>,
}

struct Model {
    /// Number and beginning of the code at each byte.
    memory: [Option<(usize, u64)>; SIZE],
    codes: Vec<Code>,
}

impl Model {
    fn put(&mut self, number: usize, at: u64, size: usize) {
        self.memory[at as usize..at as usize + size].fill(Some((number, at)));
    }

    fn remove(&mut self, number: usize) {
        self.memory
            .iter_mut()
            .filter(|byte| byte.is_some_and(|it| it.0 == number))
            .for_each(|byte| *byte = None);
    }

    /// What dies at `time`; all that happens is at multiples of 4, all deaths are in between.
    fn pass(&mut self, time: u64) {
        for number in 0..self.codes.len() {
            if self.codes[number].dies == Some(time) {
                self.remove(number);
            }
        }
    }
}

proptest! {
    #[test]
    fn answers_are_those_of_a_memory(happenings in happenings()) {
        let mut made = Made::new();
        let mut dump_loads: Vec<(u64, Code)> = Vec::new();
        let mut model = Model { memory: [None; SIZE], codes: Vec::new() };
        let mut memories = Vec::new();
        let mut moves = Vec::new();
        for (step, happening) in happenings.iter().enumerate() {
            let time = 4 * step as u64 + 4;
            match *happening {
                Happening::Load { at, size, lives } => {
                    let code = Code { at, size, dies: lives.map(|lives| time + 4 * lives + 2) };
                    dump_loads.push((time, code));
                    model.put(model.codes.len(), at, size);
                    model.codes.push(code);
                }
                Happening::Move { which, to } => {
                    let is_alive = |code: &&Code| code.dies.is_none_or(|dies| dies > time);
                    if let Some(&code) = model.codes.get(which).filter(is_alive) {
                        moves.push((time, which, code.at, to, code.size));
                        model.remove(which);
                        model.codes[which].at = to;
                        model.put(which, to, code.size);
                    }
                }
            }
            memories.push((time, model.memory));
            model.pass(time + 2);
            memories.push((time + 2, model.memory));
        }
        let (mut loads, mut moves) = (dump_loads.iter().enumerate().peekable(), moves.iter().peekable());
        loop {
            let next_move = moves.peek().map_or(u64::MAX, |moved| moved.0);
            if let Some((number, (time, code))) = loads.next_if(|(_, (time, _))| *time < next_move) {
                let (name, bytes) = (format!("f{number}"), vec![number as u8; code.size]);
                let whole = Made::code(*time, BASE + code.at, number as u64, &name, &bytes);
                made.whole(&ExtendedCode { died: code.dies, ..whole });
            } else if let Some(&(time, which, from, to, size)) = moves.next() {
                made.moved(time, which as u64, BASE + from, BASE + to, size as u64);
            } else {
                break;
            }
        }
        let dump = made.bytes();
        let mut index = CodeIndex::new();
        prop_assert_eq!(index.add(&JITDUMP, &dump).unwrap().damaged, 0);
        for (time, memory) in &memories {
            for (offset, byte) in memory.iter().enumerate() {
                let address = BASE + offset as u64;
                for time in [*time, *time + 1] {
                    let found = index.at(ONE, time, address);
                    prop_assert_eq!(found.as_ref().map(|it| it.start), byte.map(|it| BASE + it.1));
                    let Some((found, (number, _))) = found.zip(*byte) else { continue };
                    let described = index.describe(&found, &dump).unwrap();
                    let name = format!("f{number}");
                    prop_assert_eq!(described.name(), name.as_bytes());
                    let bytes = vec![number as u8; found.size as usize];
                    prop_assert_eq!(described.bytes(), bytes.as_slice());
                }
            }
        }
        // Damage costs what it damages, and never the reader.
        for at in (0..dump.len()).step_by(37) {
            let mut damaged = dump.clone();
            damaged[at] ^= 0xff;
            let mut index = CodeIndex::new();
            if index.add(&JITDUMP, &damaged).is_ok() {
                for offset in 0..SIZE as u64 {
                    if let Some(found) = index.last(ONE, BASE + offset) {
                        let _ = index.describe(&found, &dump);
                        let _ = index.describe(&found, &damaged[..at]);
                    }
                }
            }
        }
    }

    #[test]
    fn any_text_is_a_perf_map(map in "([0-9a-f]{0,17} ?[0-9a-f]{0,17} ?[a-z\u{e0}]{0,3}\n?){0,20}", cut in 0..40_usize) {
        let mut index = CodeIndex::new();
        let map = map.as_bytes();
        index.add(&code_index::PERF_MAP, map).unwrap();
        let pieces = perf_map::resolve(perf_map::entries(map).flatten());
        for piece in &pieces {
            for address in [piece.address, piece.end() - 1] {
                let found = index.last(ONE, address).unwrap();
                prop_assert_eq!(found.start, piece.entry.address);
                prop_assert_eq!(index.describe(&found, map).unwrap().name(), piece.entry.name);
                let _ = index.describe(&found, &map[..cut.min(map.len())]);
            }
        }
    }
}
