//! Compares the file with a simple model: an array with the code that was loaded last at each
//! address.

use std::fs;

use perf_map::{entries, find, resolve};
use proptest::collection::vec;
use proptest::prelude::*;
use publish_perf_map::{Options, PerfMap};

const ADDRESSES: usize = 96;
const SLACK: usize = 256 << 10;

#[derive(Debug, Clone)]
enum Event {
    Load { address: u64, size: u64, name: u16 },
    LoadMany(Vec<(u64, u64, u16)>),
    Unload(prop::sample::Index),
    UnloadAnything { address: u64, size: u64 },
    Move(prop::sample::Index, u64),
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    (0_u64..64, prop_oneof![0_u64..4, 0_u64..32])
}

fn event(longest: u16) -> impl Strategy<Value = Event> {
    let load = || (range(), 0..longest).prop_map(|((address, size), name)| (address, size, name));
    prop_oneof![
        6 => load().prop_map(|(address, size, name)| Event::Load { address, size, name }),
        1 => vec(load(), 0..8).prop_map(Event::LoadMany),
        3 => any::<prop::sample::Index>().prop_map(Event::Unload),
        1 => range().prop_map(|(address, size)| Event::UnloadAnything { address, size }),
        2 => (any::<prop::sample::Index>(), 0_u64..64).prop_map(|(code, to)| Event::Move(code, to)),
    ]
}

#[derive(Debug)]
struct Code {
    address: u64,
    size: u64,
    name: Vec<u8>,
    live: bool,
}

/// The expected content of the file.
#[derive(Debug)]
struct Model {
    codes: Vec<Code>,
    owners: [Option<usize>; ADDRESSES],
}

impl Model {
    fn load(&mut self, address: u64, size: u64, name: Vec<u8>) {
        let code = self.codes.len();
        for at in address..address + size {
            let Some(owner) = self.owners[at as usize].replace(code) else { continue };
            let Some(old) = self.codes.get_mut(owner) else { continue };
            let encloses = old.address < address && address + size <= old.address + old.size;
            old.live &= encloses;
        }
        self.codes.push(Code { address, size, name, live: size > 0 });
    }

    fn unload(&mut self, address: u64, size: u64) -> Option<Vec<u8>> {
        let mut codes = self.codes.iter_mut();
        let code = codes.find(|c| c.live && (c.address, c.size) == (address, size))?;
        code.live = false;
        Some(code.name.clone())
    }

    fn check(&self, file: &[u8]) {
        let all: Vec<_> = entries(file).map(|entry| entry.expect("a line that is none")).collect();
        let mut said: Vec<_> = all.iter().filter(|entry| entry.size > 0).collect();
        said.sort_by_key(|entry| entry.address);
        assert!(said.windows(2).all(|pair| pair[0].end() <= pair[1].address), "lines overlap");

        let pieces = resolve(all.iter().copied());
        for (address, owner) in self.owners.iter().enumerate() {
            let found = find(&pieces, address as u64).map(|piece| piece.entry.name);
            let owner = owner.map(|code| &self.codes[code]);
            match owner {
                None => assert_eq!(found, None, "{address}: never was there"),
                Some(code) if code.live => assert_eq!(found, Some(&*code.name), "{address}"),
                // Dead code may be missing, but must not be taken for other code.
                Some(code) => assert!(found.is_none_or(|name| name == code.name), "{address}"),
            }
        }

        let live: usize = said
            .iter()
            .filter(|entry| {
                self.owners[entry.address as usize].is_some_and(|code| self.codes[code].live)
            })
            .map(|entry| {
                format!("{:x} {:x} ", entry.address, entry.size).len() + entry.name.len() + 1
            })
            .sum();
        // The last batch, and a tail for each of its loads.
        let newest = 16 * 2100;
        assert!(file.len() <= live + live.max(SLACK) + newest, "{} of {live}", file.len());
    }
}

/// A name that no other code has, of about `length` bytes.
fn name(number: &mut u32, length: u16) -> Vec<u8> {
    *number += 1;
    format!("c{number}_{}", "x".repeat(length.into())).into_bytes()
}

fn run(events: &[Event]) -> (Model, Vec<u8>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let map = PerfMap::create(
        Options::new().directory(folder.path()).reporter(|why| panic!("given up: {why}")),
    );
    let map = map.unwrap();
    let path = map.path().unwrap();
    let mut model = Model { codes: Vec::new(), owners: [None; ADDRESSES] };
    let mut number = 0;
    let mut shortened = 0;
    let mut length = 0;
    for event in events {
        match event {
            &Event::Load { address, size, name: long } => {
                let name = name(&mut number, long);
                map.load(address, size, &name);
                model.load(address, size, name);
            }
            Event::LoadMany(codes) => {
                let codes: Vec<_> =
                    codes.iter().map(|&(a, s, long)| (a, s, name(&mut number, long))).collect();
                map.load_many(codes.iter().map(|(address, size, name)| (*address, *size, name)));
                for (address, size, name) in codes {
                    model.load(address, size, name);
                }
            }
            Event::Unload(index) if !model.codes.is_empty() => {
                let code = index.get(&model.codes);
                let (address, size) = (code.address, code.size);
                map.unload(address, size);
                model.unload(address, size);
            }
            Event::Move(index, to) if !model.codes.is_empty() => {
                let code = index.get(&model.codes);
                let (address, size) = (code.address, code.size);
                map.moved(address, *to, size);
                if *to != address
                    && let Some(name) = model.unload(address, size)
                {
                    model.load(*to, size, name);
                }
            }
            &Event::UnloadAnything { address, size } => {
                map.unload(address, size);
                model.unload(address, size);
            }
            Event::Unload(_) | Event::Move(..) => {}
        }
        let now = fs::metadata(&path).unwrap().len();
        shortened += usize::from(now < length);
        length = now;
    }
    let file = fs::read(&path).unwrap();
    let others = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(others, 1, "something was left beside the map");
    (model, file, shortened)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_address_has_the_name_of_its_last_load(events in vec(event(8), 0..60)) {
        let (model, file, _) = run(&events);
        model.check(&file);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_address_keeps_its_name_when_the_file_is_rewritten(events in vec(event(1900), 600..900)) {
        let (model, file, shortened) = run(&events);
        prop_assert!(shortened > 0, "the file was never written anew");
        model.check(&file);
    }
}

#[test]
fn live_codes_stay_when_many_codes_die() {
    let folder = tempfile::tempdir().unwrap();
    let map = PerfMap::create(Options::new().directory(folder.path())).unwrap();
    map.load_many((0..20_000_u64).map(|n| (0x10_0000 + n * 0x100, 0x80, format!("live_{n}"))));
    let live = fs::metadata(map.path().unwrap()).unwrap().len();
    let mut longest = 0;
    for n in 0..200_000_u64 {
        let address = 0x7000_0000 + (n % 1000) * 0x40;
        map.load(address, 0x40, format!("dead_{n}").as_bytes());
        map.unload(address, 0x40);
        if n % 64 == 0 {
            longest = longest.max(fs::metadata(map.path().unwrap()).unwrap().len());
        }
    }
    assert!(longest > live + live / 2, "the dead are kept for a while");
    assert!(longest <= 2 * live + 4096, "{longest} of {live}");
    let file = fs::read(map.path().unwrap()).unwrap();
    let pieces = resolve(entries(&file).map(Result::unwrap));
    for n in 0..20_000 {
        let piece = find(&pieces, 0x10_0000 + n * 0x100 + 0x7f).unwrap();
        assert_eq!(piece.entry.name, format!("live_{n}").as_bytes());
    }
    assert_eq!(find(&pieces, 0x7000_0000 + 999 * 0x40).unwrap().entry.name, b"dead_199999");
}

#[test]
fn the_youngest_dead_codes_keep_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let map = PerfMap::create(Options::new().directory(folder.path())).unwrap();
    let live = |n: u64| 0x10_0000 + n * 0x100;
    map.load_many((0..100).map(|n| (live(n), 0x80, format!("live_{n}"))));
    // Downwards, so that the youngest have the lowest addresses.
    let dead = |n: u64| 0x7000_0000 - n * 0x100;
    for n in 0..50_000 {
        map.load(dead(n), 0x80, format!("dead_{n}").as_bytes());
        map.unload(dead(n), 0x80);
    }
    let file = fs::read(map.path().unwrap()).unwrap();
    assert!(file.len() <= SLACK + 8192, "{}", file.len());
    let pieces = resolve(entries(&file).map(Result::unwrap));
    let name = |address| find(&pieces, address).map(|piece| piece.entry.name);
    for n in 0..100 {
        assert_eq!(name(live(n)), Some(format!("live_{n}").as_bytes()));
    }
    // 128 KiB of lines, each of 24 bytes or less.
    for n in 45_000..50_000 {
        assert_eq!(name(dead(n)), Some(format!("dead_{n}").as_bytes()));
    }
    assert_eq!(name(dead(0)), None);
}
