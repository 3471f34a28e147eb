//! What each thread did, noted by itself in memory that outlives it: the truth to compare a log with.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::{Code, Line, LoadedCode, Scribe};

use crate::sys::Shared;

pub const THREADS: usize = 16;
pub const SLOTS: usize = 64;

/// Words before those of the slots.
const READY: usize = 0;
const ERRORS: usize = 1;
const FORKS: usize = 2;
const COUNTS: usize = 16;
const LEFT_OUT: usize = COUNTS + 8 * THREADS;
const FIRST_SLOT: usize = LEFT_OUT + 8 * THREADS;
pub const WORDS: usize = FIRST_SLOT + THREADS * SLOTS;

#[derive(Clone, Copy)]
pub struct Roster(pub Shared);

/// What a thread is doing with a slot, which holds one code or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Empty,
    Loading,
    Live,
    Dying,
    Moving,
}

/// A slot: how many codes it has had, how often the last was moved, and what is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub code: u64,
    pub version: u64,
    pub phase: Phase,
}

pub const VERSIONS: u64 = 15;

impl Slot {
    pub fn word(self) -> u64 {
        self.code << 8 | self.version << 4 | self.phase as u64
    }

    pub fn from_word(word: u64) -> Self {
        let phases = [Phase::Empty, Phase::Loading, Phase::Live, Phase::Dying, Phase::Moving];
        Self { code: word >> 8, version: word >> 4 & 15, phase: phases[(word & 15) as usize] }
    }
}

impl Roster {
    fn word(&self, at: usize) -> &AtomicU64 {
        self.0.word(at)
    }

    pub fn set_ready(&self) {
        self.word(READY).store(1, SeqCst);
    }

    pub fn is_ready(&self) -> bool {
        self.word(READY).load(SeqCst) != 0
    }

    pub fn add_error(&self) {
        self.word(ERRORS).fetch_add(1, SeqCst);
    }

    pub fn errors(&self) -> u64 {
        self.word(ERRORS).load(SeqCst)
    }

    pub fn add_fork(&self) {
        self.word(FORKS).fetch_add(1, SeqCst);
    }

    pub fn forks(&self) -> u64 {
        self.word(FORKS).load(SeqCst)
    }

    pub fn count(&self, thread: usize) {
        self.word(COUNTS + 8 * thread).fetch_add(1, SeqCst);
    }

    pub fn total(&self) -> u64 {
        (0..THREADS).map(|thread| self.word(COUNTS + 8 * thread).load(SeqCst)).sum()
    }

    pub fn left_out(&self) -> u64 {
        (0..THREADS).map(|thread| self.word(LEFT_OUT + 8 * thread).load(SeqCst)).sum()
    }

    pub fn note(&self, thread: usize, slot: usize, what: Slot) {
        self.word(FIRST_SLOT + thread * SLOTS + slot).store(what.word(), SeqCst);
    }

    pub fn slots(&self) -> Vec<Slot> {
        (FIRST_SLOT..WORDS).map(|at| Slot::from_word(self.word(at).load(SeqCst))).collect()
    }
}

/// The code in a slot, as it is announced.
pub struct Made {
    pub name: String,
    pub address: u64,
    pub bytes: Vec<u8>,
    lines: [Line<'static>; 3],
}

impl Made {
    pub fn new(thread: usize, slot: usize, code: u64, with_bytes: bool) -> Self {
        let mix = code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let name = format!("w{thread}.{slot}.{code}.{}", "x".repeat((mix % 90) as usize));
        let size = if with_bytes && mix.is_multiple_of(50) { 70_000 } else { 16 + mix % 400 };
        let bytes = (0..size).map(|n| (n ^ code) as u8).collect();
        let line = |n: u32| Line::new(n, "/src/stress", code as u32).column(n);
        Self { name, address: address(thread, slot, code, 0), bytes, lines: [0, 5, 9].map(line) }
    }

    pub fn load(&self, scribe: Scribe) -> u64 {
        let code = Code::new(&self.bytes).runs_at(self.address).named(&self.name);
        scribe.load(&code.lines(&self.lines)).into_raw()
    }
}

pub fn address(thread: usize, slot: usize, code: u64, version: u64) -> u64 {
    1 << 46 | (thread as u64) << 40 | (slot as u64) << 32 | (code & 0xffff) << 16 | version << 12
}

/// A thread that loads, moves and unloads code, and notes what it does.
pub struct Hand {
    pub roster: Roster,
    pub scribe: Scribe,
    pub thread: usize,
    pub with_bytes: bool,
    pub slots: Vec<(Slot, u64)>,
}

impl Hand {
    pub fn new(roster: Roster, scribe: Scribe, thread: usize, with_bytes: bool) -> Self {
        let empty = Slot { code: 0, version: 0, phase: Phase::Empty };
        Self { roster, scribe, thread, with_bytes, slots: vec![(empty, 0); SLOTS] }
    }

    fn note(&self, slot: usize, what: Slot) {
        self.roster.note(self.thread, slot, what);
    }

    fn done(&mut self, slot: usize, what: Slot, raw: u64) {
        self.slots[slot] = (what, raw);
        self.note(slot, what);
        self.roster.count(self.thread);
    }

    fn left_out(&self) {
        self.roster.word(LEFT_OUT + 8 * self.thread).fetch_add(1, SeqCst);
    }

    /// Does one of the three to a slot.
    pub fn act(&mut self, random: u64) {
        let slot = (random >> 8) as usize % SLOTS;
        let (now, raw) = self.slots[slot];
        let empty = Slot { phase: Phase::Empty, ..now };
        if raw == 0 {
            let code = now.code + 1;
            self.note(slot, Slot { code, version: 0, phase: Phase::Loading });
            let raw = Made::new(self.thread, slot, code, self.with_bytes).load(self.scribe);
            let phase = if raw == 0 { Phase::Empty } else { Phase::Live };
            if raw == 0 {
                self.left_out();
            }
            self.done(slot, Slot { code, version: 0, phase }, raw);
        } else if random.is_multiple_of(4) && now.version < VERSIONS {
            self.note(slot, Slot { phase: Phase::Moving, ..now });
            let mut code = LoadedCode::from_raw(self.scribe, raw);
            let version = now.version + 1;
            code.moved_to_address(address(self.thread, slot, now.code, version));
            let raw = code.into_raw();
            if raw == 0 {
                self.left_out();
                self.done(slot, empty, 0);
            } else {
                self.done(slot, Slot { version, ..now }, raw);
            }
        } else {
            self.unload(slot);
        }
    }

    pub fn unload(&mut self, slot: usize) {
        let (now, raw) = self.slots[slot];
        if raw != 0 {
            self.note(slot, Slot { phase: Phase::Dying, ..now });
            drop(LoadedCode::from_raw(self.scribe, raw));
            self.done(slot, Slot { phase: Phase::Empty, ..now }, 0);
        }
    }
}

/// Thread, slot, code and version, if this is one of ours; an error if it is, and not as it should be.
fn identity(code: &CodeLoad<'_>, with_bytes: bool) -> Result<(usize, u64, u64), String> {
    let fail = |why: &str| {
        Err(format!("{why}: {:x} {:?}", code.address, code.name.escape_ascii().to_string()))
    };
    let Ok(name) = std::str::from_utf8(code.name) else { return fail("no text") };
    let fields: Option<Vec<u64>> =
        name.strip_prefix('w').map(|rest| rest.split('.').take(3).flat_map(str::parse).collect());
    let Some([thread, slot, number]) = fields.as_deref() else { return fail("a stranger") };
    let (thread, slot) = (*thread as usize, *slot as usize);
    let version = code.address >> 12 & 15;
    let made = Made::new(thread, slot, *number, with_bytes);
    if made.name != name
        || code.address != address(thread, slot, *number, version)
        || code.size != made.bytes.len() as u64
        || (with_bytes && code.bytes != made.bytes)
    {
        return fail("torn");
    }
    let lines: Vec<_> = code.lines().map(|line| (line.address - code.address, line.line)).collect();
    if lines != [0, 5, 9].map(|offset| (offset, *number as u32)) {
        return fail("torn lines");
    }
    Ok((thread * SLOTS + slot, *number, version))
}

/// Compares a dump with the slots before and after it was made. Returns how many codes are missing that were alive all the time.
/// `is_known` recognises other codes that may be there.
pub fn compare(
    dump: &[u8],
    before: &[Slot],
    after: &[Slot],
    with_bytes: bool,
    is_known: impl Fn(&[u8]) -> bool,
) -> Result<u64, String> {
    let mut alive: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
    for event in Dump::parse(dump).map_err(|error| error.to_string())?.codes() {
        let CodeEvent::Load(code) = event.map_err(|error| error.to_string())? else { continue };
        if is_known(code.name) {
            continue;
        }
        let (slot, number, version) = identity(&code, with_bytes)?;
        if code.died().is_none() {
            alive.entry(slot).or_default().push((number, version));
        }
    }
    let mut missing = 0;
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        let found = alive.remove(&at).unwrap_or_default();
        let now = (before.code, before.version);
        let next = (before.code, before.version + 1);
        let fits = if before != after {
            found.iter().all(|(code, _)| (before.code..=after.code).contains(code))
        } else {
            match before.phase {
                Phase::Empty => found.is_empty(),
                Phase::Live if found.is_empty() => {
                    missing += 1;
                    true
                }
                Phase::Live => found == [now],
                Phase::Loading | Phase::Dying => found.is_empty() || found == [now],
                Phase::Moving => found.iter().all(|found| [now, next].contains(found)),
            }
        };
        if !fits {
            return Err(format!("slot {at}: {before:?} to {after:?}, found {found:?}"));
        }
    }
    if alive.is_empty() { Ok(missing) } else { Err(format!("strangers: {alive:?}")) }
}
