//! The record of every process of the storm about its own codes, in memory that outlives it.

use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

use crate::sys::Shared;

/// Threads of a process that announce.
pub const THREADS: usize = 4;
/// Codes that a thread has alive, at most.
pub const ROWS: usize = 32;
/// Codes that a process has alive, at most.
pub const SLOTS: usize = THREADS * ROWS;
/// Processes at a time.
pub const PROCESSES: usize = 256;
/// Bytes of a process's memory for one code.
pub const PLACE: usize = 256;

const HEAD: usize = 8;
const ENTRY: usize = HEAD + SLOTS;
/// Words for all.
pub const WORDS: usize = 8 + PROCESSES * ENTRY;

/// What all know.
#[derive(Clone, Copy)]
pub struct Truth(pub Shared);

/// The record of one process.
#[derive(Clone, Copy)]
pub struct Entry {
    shared: Shared,
    number: usize,
}

/// What becomes of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free,
    AtWork,
    /// It has done what it had to, and waits.
    Done,
}

impl Truth {
    /// An entry that no process has.
    pub fn claim(&self) -> Entry {
        loop {
            for number in 0..PROCESSES {
                let entry = self.entry(number);
                if entry.word(0).compare_exchange(0, 1, SeqCst, SeqCst).is_ok() {
                    return entry;
                }
            }
            std::thread::yield_now();
        }
    }

    pub fn entry(&self, number: usize) -> Entry {
        Entry { shared: self.0, number }
    }

    /// Forks and the like that were made.
    pub fn forks(&self) -> &'static std::sync::atomic::AtomicU64 {
        self.0.word(0)
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry> + use<> {
        let shared = self.0;
        (0..PROCESSES).map(move |number| Entry { shared, number })
    }
}

impl Entry {
    fn word(&self, at: usize) -> &'static std::sync::atomic::AtomicU64 {
        self.shared.word(8 + self.number * ENTRY + at)
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn state(&self) -> State {
        match self.word(0).load(Acquire) {
            0 => State::Free,
            1 => State::AtWork,
            _ => State::Done,
        }
    }

    pub fn set_state(&self, state: State) {
        self.word(0).store(state as u64, Release);
    }

    /// Empties it, for another process.
    pub fn free(&self) {
        for at in 1..ENTRY {
            self.word(at).store(0, SeqCst);
        }
        self.set_state(State::Free);
    }

    pub fn set_process(&self, pid: u64, base: u64) {
        self.word(2).store(base, Release);
        self.word(1).store(pid, Release);
    }

    pub fn pid(&self) -> i32 {
        self.word(1).load(Acquire) as i32
    }

    pub fn base(&self) -> u64 {
        self.word(2).load(Acquire)
    }

    /// Its parent went on before it first announced: what it inherited is not compared with what was alive at the fork.
    pub fn set_goes_on(&self) {
        self.word(5).store(1, Release);
    }

    pub fn goes_on(&self) -> bool {
        self.word(5).load(Acquire) != 0
    }

    /// Announcements that the library took.
    pub fn count_taken(&self) {
        self.word(3).fetch_add(1, SeqCst);
    }

    pub fn taken(&self) -> u64 {
        self.word(3).load(Acquire)
    }

    /// And those that it did not.
    pub fn count_refused(&self) {
        self.word(4).fetch_add(1, SeqCst);
    }

    pub fn refused(&self) -> u64 {
        self.word(4).load(Acquire)
    }

    /// The live code in a slot; 0 if there is none. It is set after the announcement, and cleared before the code is dropped.
    pub fn alive(&self, slot: usize) -> u64 {
        self.word(HEAD + slot).load(Acquire)
    }

    pub fn set_alive(&self, slot: usize, id: u64) {
        self.word(HEAD + slot).store(id, Release);
    }
}

/// What is announced of a code, all by its number: whatever is mixed with another's does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit(pub u64);

impl Kit {
    pub fn new(entry: usize, slot: usize, count: u64) -> Self {
        Self((entry as u64) << 44 | (slot as u64) << 32 | count & 0xffff_ffff)
    }

    /// The entry of the process that announced it.
    pub fn entry(self) -> usize {
        (self.0 >> 44) as usize
    }

    pub fn slot(self) -> usize {
        (self.0 >> 32) as usize & 0xfff
    }

    fn mixed(self) -> u64 {
        let mut mixed = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn size(self) -> usize {
        16 + (self.mixed() % (PLACE as u64 - 16)) as usize
    }

    pub fn line(self) -> u32 {
        1 + (self.mixed() >> 40) as u32 % 10_000
    }

    pub fn bytes(self) -> [u8; PLACE] {
        std::array::from_fn(|at| (self.mixed() >> (at % 8 * 8)) as u8 ^ at as u8)
    }

    /// Its name, written into the given buffer.
    pub fn name(self, room: &mut [u8; 48]) -> &str {
        let mut write = &mut room[..];
        std::io::Write::write_fmt(
            &mut write,
            format_args!("storm-{:016x}-{:016x}", self.0, self.mixed()),
        )
        .expect("room");
        std::str::from_utf8(&room[..39]).expect("ASCII")
    }

    /// The code of a name, if the name is whole.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        let (number, mixed) = name.strip_prefix("storm-")?.split_once('-')?;
        let kit = Self(u64::from_str_radix(number, 16).ok()?);
        (u64::from_str_radix(mixed, 16).ok()? == kit.mixed()).then_some(kit)
    }
}
