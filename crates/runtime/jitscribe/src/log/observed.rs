//! A log that is observed at every instant: between any two accesses of an announcement.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use super::layout::{CHUNK, FIRST_CHUNK, chunk};
use super::mapping::observe;
use super::{Log, LogOptions, Position};
use crate::clock::Clock;
use jit_code::{Code, Line};

/// A log with this many chunks, whose memory is all there: observers read all of it.
pub(super) fn log(chunks: usize) -> Log {
    let limit = FIRST_CHUNK + chunks * CHUNK;
    let options =
        LogOptions { file: None, limit, control: 1, reuse: true, clock: Clock::Monotonic };
    let log = Log::create(options, |failure, _| panic!("{failure}")).unwrap();
    // Growing the file gives no chunk to anyone.
    log.mapping.have(&log.backing, 0, limit).unwrap();
    log
}

/// A code in a log.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// A multiple of 1 MiB.
    pub(super) address: u64,
    /// Where it was before it was moved: it is in the name.
    announced: u64,
}

impl Known {
    pub(super) fn at(address: u64) -> Self {
        Self { address, announced: address }
    }

    pub(super) fn name(&self) -> String {
        format!("code {:x}", self.announced)
    }
}

pub(super) struct Instant<'a> {
    pub(super) number: u64,
    pub(super) log: &'a Log,
    pub(super) bytes: &'a [u8],
    /// The codes that are certainly there, by address.
    pub(super) alive: &'a [Known],
    /// Those that may be there.
    pub(super) perhaps: &'a [Known],
}

pub(super) trait Observer: Default + 'static {
    fn look(&mut self, instant: &Instant<'_>);

    /// What is asked behind an action that concerned one code: whether it is there.
    fn after(_log: &Log, _code: Known, _is_there: bool) {}
}

/// A log, and the codes that are in it.
pub(super) struct Observed<O> {
    pub(super) log: Rc<Log>,
    pub(super) handles: BTreeMap<u64, (Known, (Position, u32))>,
    with_bytes: bool,
    observer: Rc<RefCell<O>>,
    instants: Rc<Cell<u64>>,
    bytes: Vec<u8>,
}

impl<O: Observer> Observed<O> {
    pub(super) fn new(chunks: usize, with_bytes: bool) -> Self {
        Self {
            log: Rc::new(log(chunks)),
            handles: BTreeMap::new(),
            with_bytes,
            observer: Rc::default(),
            instants: Rc::default(),
            bytes: (0..200_000_u32).map(|n| n as u8).collect(),
        }
    }

    /// At each instant of `action`, all other codes are there, and those of `perhaps` may be.
    pub(super) fn observed<T>(&self, perhaps: &[Known], action: impl FnOnce(&Log) -> T) -> T {
        let is_certain =
            |known: &Known| perhaps.iter().all(|perhaps| perhaps.address != known.address);
        let known = self.handles.values().map(|(known, _)| *known);
        let alive: Vec<Known> = known.filter(is_certain).collect();
        let perhaps = perhaps.to_vec();
        let (log, instants) = (self.log.clone(), self.instants.clone());
        let observer = self.observer.clone();
        let mut result = None;
        observe::during(
            move |bytes| {
                instants.set(instants.get() + 1);
                let number = instants.get();
                let instant =
                    Instant { number, log: &log, bytes, alive: &alive, perhaps: &perhaps };
                observer.borrow_mut().look(&instant);
            },
            || result = Some(action(&self.log)),
        );
        result.unwrap()
    }

    fn announce(&self, log: &Log, known: Known, size: usize) -> Option<(Position, u32)> {
        let name = known.name();
        let lines = [Line::new(0, "e", 1), Line::new(3, "f", 2), Line::new(6, "e", 3)];
        let code = Code::new(&self.bytes[..size]).runs_at(known.address).named(&name);
        log.load(&code.lines(&lines), self.with_bytes, 1)
    }

    pub(super) fn load(&mut self, address: u64, size: usize) -> bool {
        let known = Known::at(address);
        let handle = self.observed(&[known], |log| self.announce(log, known, size));
        O::after(&self.log, known, handle.is_some());
        self.handles.extend(handle.map(|handle| (address, (known, handle))));
        handle.is_some()
    }

    fn load_unobserved(&mut self, address: u64, size: usize) -> bool {
        let known = Known::at(address);
        let handle = self.announce(&self.log, known, size);
        self.handles.extend(handle.map(|handle| (address, (known, handle))));
        handle.is_some()
    }

    pub(super) fn unload(&mut self, address: u64) {
        let (known, (position, index)) = self.handles[&address];
        self.observed(&[known], |log| log.end(log.living(position, index).unwrap()));
        self.handles.remove(&address);
        O::after(&self.log, known, false);
    }

    fn moved(&mut self, from: u64, to: u64) {
        let (known, (position, index)) = self.handles[&from];
        let there = Known { address: to, ..known };
        let handle = self.observed(&[known, there], |log| {
            let new = log.move_to(position, index, to, None, 1);
            log.end(log.living(position, index).unwrap());
            new
        });
        self.handles.remove(&from);
        O::after(&self.log, known, false);
        O::after(&self.log, there, handle.is_some());
        self.handles.extend(handle.map(|handle| (to, (there, handle))));
    }

    /// Becomes the child of a fork, as one process: what it has of its own is another log all the same.
    pub(super) fn adopt(&self) {
        let limit = self.log.mapping.size();
        self.log.adopt(99, true).unwrap();
        self.log.mapping.have(&self.log.backing, 0, limit).unwrap();
    }

    pub(super) fn finish(self) {
        self.observed(&[], |log| {
            log.mapping.word(0).load(Relaxed);
        });
        let instants = self.instants.get();
        assert!(instants > 500, "{instants}");
    }
}

/// Announces, moves and unloads.
pub(super) fn announcements<O: Observer>() {
    for with_bytes in [false, true] {
        let mut test = Observed::<O>::new(2, with_bytes);
        for n in 1..40_u64 {
            assert!(test.load(n << 20, 100 + n as usize));
            if n % 3 == 0 {
                test.unload((n - 1) << 20);
            }
            if n % 3 == 1 {
                test.moved(n << 20, (n + 100) << 20);
            }
        }
        test.finish();
    }
}

/// Reuses the space of dead code.
pub(super) fn reuse<O: Observer>() {
    for with_bytes in [false, true] {
        let mut test = Observed::<O>::new(2, with_bytes);
        // Names are short, and codes large: with bytes a chunk holds few, without bytes it holds many.
        let (size, most) = if with_bytes { (9_000, 12) } else { (100, 700) };
        let mut next = 0;
        for round in 0..3 {
            let before = next;
            while test.handles.len() < most {
                next += 1;
                // Of many, only the changes of chunks matter here.
                let is_observed = with_bytes || next % 100 == 0;
                let address = next << 20;
                let is_loaded = if is_observed {
                    test.load(address, size)
                } else {
                    test.load_unobserved(address, size)
                };
                if !is_loaded {
                    break;
                }
            }
            assert!(next > before, "round {round}");
            let doomed: Vec<u64> = test.handles.keys().copied().collect();
            for (n, address) in doomed.into_iter().enumerate() {
                if n % 4 != round {
                    test.unload(address);
                }
            }
        }
        let epoch = |number| test.log.mapping.word(FIRST_CHUNK + number * CHUNK + chunk::EPOCH);
        assert!((0..2).any(|number| epoch(number).load(Relaxed) > 0), "no space was reused");
        test.finish();
    }
}

/// A run of three chunks, which dies, becomes single chunks, which die, and are joined again.
pub(super) fn joining_and_splitting<O: Observer>() {
    let mut test = Observed::<O>::new(5, true);
    assert!(test.load(1 << 20, 1_000));
    assert!(test.load(2 << 20, 150_000));
    assert!(test.load(3 << 20, 50_000));
    let mut run = 2 << 20;
    for round in 1..4_u64 {
        test.unload(run);
        let base = round << 30;
        let mut small: Vec<u64> = (0..12).map(|n| base + (n << 20)).collect();
        small.retain(|address| test.load(*address, 12_000));
        assert!(small.len() > 8, "{} in round {round}", small.len());
        small.into_iter().for_each(|address| test.unload(address));
        run = base + (90 << 20);
        assert!(test.load(run, 120_000), "round {round}");
    }
    test.finish();
}
