//! Compares what readers find of a process with the process's own record.

use std::collections::{HashMap, HashSet};
use std::fmt;

use jitdump::{CodeEvent, Dump};

use crate::truth::{Entry, Kit, PLACE, SLOTS};

/// What was found wrong, and in how much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Findings {
    /// Readings.
    pub readings: u64,
    /// Codes that were alive, each looked at field by field.
    pub codes: u64,
    /// Announced, and not there.
    pub lost: u64,
    /// There, and not whole, or with something of another's.
    pub mixed: u64,
    /// Codes in the dump that were unloaded, more than threads can be in the middle of.
    pub undead: u64,
    /// Inherited codes that are otherwise than at the fork, where the parent had gone on.
    pub later: u64,
    /// Records that the reader takes for damaged.
    pub damaged: u64,
}

impl Findings {
    pub fn add(&mut self, other: Self) {
        self.readings += other.readings;
        self.codes += other.codes;
        self.lost += other.lost;
        self.mixed += other.mixed;
        self.undead += other.undead;
        self.later += other.later;
        self.damaged += other.damaged;
    }

    pub fn is_clean(&self) -> bool {
        self.lost + self.mixed + self.undead + self.damaged == 0
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { readings, codes, lost, mixed, undead, later: _, damaged } = self;
        write!(f, "{readings:>8} {codes:>10} {lost:>5} {mixed:>5} {undead:>6} {damaged:>7}")
    }
}

/// Compares a dump with the entry of a process that does not change during the comparison. `in_the_middle`: threads that may have
/// announced something and not recorded it, or the other way round.
pub fn check(dump: &[u8], entry: Entry, in_the_middle: u64) -> Result<Findings, String> {
    let mut findings = Findings { readings: 1, ..Findings::default() };
    let parsed = Dump::parse(dump).map_err(|error| format!("no dump: {error}"))?;
    let mut alive: HashMap<u64, u32> = HashMap::new();
    let mut inherited: HashSet<u64> = HashSet::new();
    let mut why = String::new();
    for event in parsed.codes() {
        let load = match event {
            Ok(CodeEvent::Load(load)) => load,
            Ok(_) => continue,
            Err(error) => {
                findings.damaged += 1;
                why = format!("damaged: {error}");
                continue;
            }
        };
        if load.died().is_some() || load.name == b"borrowed" {
            continue;
        }
        findings.codes += 1;
        let Some(kit) = Kit::of_name(load.name) else {
            findings.mixed += 1;
            why = format!("a name: {}", String::from_utf8_lossy(load.name));
            continue;
        };
        // The space of inherited code may have been reused in its parent since.
        if entry.goes_on() && kit.entry() != entry.number() {
            findings.later += u64::from(entry.alive(kit.slot()) != kit.0);
            inherited.insert(kit.0);
            continue;
        }
        let size = kit.size();
        let address = entry.base() + (kit.slot() * PLACE) as u64;
        let lines: Vec<_> = load.lines().map(|line| (line.address, line.file, line.line)).collect();
        let is_whole = load.address == address
            && load.size == size as u64
            && (load.is_without_bytes() || load.bytes == &kit.bytes()[..size])
            && lines == [(address, &b"storm.c"[..], kit.line())];
        if !is_whole {
            findings.mixed += 1;
            why = format!("{kit:x?} has parts of another: {load:?}, {lines:?}");
        }
        *alive.entry(kit.0).or_default() += 1;
    }
    let mut extra: u64 = alive.values().map(|count| u64::from(*count)).sum();
    for slot in 0..SLOTS {
        let id = entry.alive(slot);
        if id == 0 {
            continue;
        }
        if entry.goes_on() && Kit(id).entry() != entry.number() {
            findings.later += u64::from(!inherited.contains(&id));
            continue;
        }
        if alive.contains_key(&id) {
            extra -= 1;
        } else {
            findings.lost += 1;
            why = format!("{id:#x} in slot {slot} is lost");
        }
    }
    if extra > in_the_middle {
        findings.undead += extra - in_the_middle;
        why = format!("{extra} are alive that should not be");
    }
    if findings.is_clean() { Ok(findings) } else { Err(format!("{why}; {findings:?}")) }
}
