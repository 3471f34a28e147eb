//! Who ran at an address: asked for each sample and each entry of its call chain.
//!
//! A long recording asks for few places again and again. An answer is good for some addresses and a
//! span of time around what was asked ([`Timeline::around`]), so the last ones are kept; in debug
//! builds each that serves again is looked up anew and compared.

use std::ops::Range;

use code_timeline::ranges::intersection;
use code_timeline::{Around, CodeId, LifeId, Timeline, Who};

use super::address_space::AddressSpaces;
use super::codes::{Ahead, CodeBook, Origin};
use super::seen::{SeenId, SeenTable};
use super::survey::Survey;

/// How long before its LOAD was written code may have run.
///
/// Writers announce code after they have made it reachable, some in a thread of their own: 21 ms
/// were seen with OpenJDK.
const LEAD: u64 = 100_000_000;

/// How many answers are kept: what a second processor cache holds.
const ANSWERS: usize = 1 << 14;
/// Bytes of code that share a place among the answers: about a small function's.
const GRANULE: u64 = 64;
/// How many processes are kept.
const PROCESSES: usize = 1 << 8;

/// Answers who ran where.
pub struct Answers<'a> {
    known: Known<'a>,
    named_by_perf: &'a dyn Fn(u32) -> bool,
    processes: Vec<Option<Process<'a>>>,
    answers: Vec<Option<Answer>>,
}

/// All that answers are made of.
#[derive(Clone, Copy)]
struct Known<'a> {
    survey: &'a Survey,
    spaces: &'a AddressSpaces,
    book: &'a CodeBook<'a>,
}

/// A process during one of its lives.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Whether perf names its code by itself.
    pub named_by_perf: bool,
    pid: u32,
    life: LifeId,
    /// From when until when the process id means this life.
    from: u64,
    until: u64,
    lineage: Option<Lineage<'a>>,
}

/// Whose code a process runs: its own or, if it has none, that of the nearest process that it was
/// forked from.
#[derive(Clone, Copy, Debug)]
struct Lineage<'a> {
    owner: LifeId,
    timeline: &'a Timeline,
    /// Before this, there was none.
    from: u64,
    /// In another life than the owner's: until when it has what the owner had.
    asked: Option<u64>,
}

/// Who ran at some addresses during a span of time.
#[derive(Clone, Debug)]
pub struct Answer {
    life: LifeId,
    addresses: Range<u64>,
    times: Range<u64>,
    /// What is known.
    pub says: Says,
}

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// This code ran there.
    Code(SeenId),
    /// No source knows.
    Nothing {
        /// Whether the memory is no file's: jitted code, as far as anyone can tell.
        unnamed: bool,
        /// Which code came there later.
        ahead: Option<CodeId>,
    },
}

impl Answer {
    /// Whether it is the answer for `address`, too, at the same time.
    pub fn is_for(&self, address: u64) -> bool {
        self.addresses.contains(&address)
    }
}

impl Process<'_> {
    /// What `time` is in the timeline of the code it runs.
    pub fn time_of_code(&self, time: u64) -> u64 {
        self.lineage.and_then(|lineage| lineage.asked).unwrap_or(time)
    }

    /// That `code` came after something else had run in its place.
    pub fn ahead(&self, code: CodeId) -> Option<Ahead> {
        let Lineage { owner, asked, .. } = self.lineage?;
        // Of one life all is told by the code.
        Some(Ahead { owner, life: self.life, code, asked: asked.unwrap_or(0) })
    }
}

impl<'a> Answers<'a> {
    /// No answers yet. `named_by_perf` says of which processes perf names the code by itself.
    pub fn new(
        survey: &'a Survey,
        spaces: &'a AddressSpaces,
        book: &'a CodeBook<'a>,
        named_by_perf: &'a dyn Fn(u32) -> bool,
    ) -> Self {
        let (processes, answers) = (vec![None; PROCESSES], vec![None; ANSWERS]);
        Self { known: Known { survey, spaces, book }, named_by_perf, processes, answers }
    }

    /// Which process `pid` was at `time`.
    pub fn process(&mut self, pid: u32, time: u64) -> Option<Process<'a>> {
        let place = pid as usize % PROCESSES;
        if let Some(Some(kept)) = self.processes.get(place)
            && kept.pid == pid
            && (kept.from..kept.until).contains(&time)
        {
            return Some(*kept);
        }
        let processes = &self.known.survey.processes;
        let (life, Range { start: from, end: until }) = processes.around(pid, time)?;
        let (lineage, named_by_perf) = (self.known.lineage(life), (self.named_by_perf)(pid));
        let process = Process { named_by_perf, pid, life, from, until, lineage };
        self.processes[place] = Some(process);
        Some(process)
    }

    /// Who ran at `address` in `process` at `time`, which the process is of.
    pub fn at(
        &mut self,
        process: &Process<'_>,
        address: u64,
        time: u64,
        seen: &mut SeenTable,
    ) -> &mut Answer {
        let (life, known) = (process.life, self.known);
        let place = (address / GRANULE) as usize ^ life.index().wrapping_mul(ANSWERS / 16 + 1);
        let kept = &mut self.answers[place % ANSWERS];
        let is_it = |kept: &Answer| {
            kept.life == life && kept.addresses.contains(&address) && kept.times.contains(&time)
        };
        if kept.as_ref().is_some_and(is_it) {
            debug_assert!(kept.as_ref().is_some_and(|kept| {
                let anew = known.look_up(process, address, time, seen);
                match (kept.says, anew.says) {
                    // It is taken out when it is told.
                    (
                        Says::Nothing { unnamed, ahead: None },
                        Says::Nothing { unnamed: anew, .. },
                    ) => unnamed == anew,
                    (kept, anew) => kept == anew,
                }
            }));
        } else {
            *kept = None;
        }
        kept.get_or_insert_with(|| known.look_up(process, address, time, seen))
    }
}

impl<'a> Known<'a> {
    fn lineage(&self, life: LifeId) -> Option<Lineage<'a>> {
        let (mut owner, mut from, mut asked) = (life, 0, None);
        // Up the line of parents, which a hostile recording cannot make endless: each fork lies
        // before the one below it.
        loop {
            if let Some(timeline) = self.book.timeline(owner) {
                return Some(Lineage { owner, timeline, from, asked });
            }
            let (parent, forked) = self.survey.processes.parent(owner)?;
            match asked {
                None => from = forked,
                Some(asked) if forked > asked => return None,
                Some(_) => {}
            }
            (owner, asked) = (parent, Some(forked.saturating_sub(1)));
        }
    }

    fn look_up(
        &self,
        process: &Process<'_>,
        address: u64,
        time: u64,
        seen: &mut SeenTable,
    ) -> Answer {
        let life = process.life;
        let all = 0..u64::MAX;
        let (addresses, times, ahead) = match process.lineage {
            None => (all.clone(), all, None),
            Some(Lineage { from, .. }) if time < from => (all, 0..from, None),
            Some(Lineage { owner, timeline, from, asked }) => {
                let there = CodeThere::of(self.book, timeline, address, asked.unwrap_or(time));
                // Code that is kept for a child does not change any more.
                let times = if asked.is_some() { from..u64::MAX } else { there.times };
                if let Some(code) = there.code {
                    let says = Says::Code(seen.id(owner, code, asked.unwrap_or(time)));
                    return Answer { life, addresses: there.addresses, times, says };
                }
                (there.addresses, times, there.ahead)
            }
        };
        let memory = self.spaces.around(self.survey, life, address, time);
        let says = Says::Nothing { unnamed: memory.is_anonymous, ahead };
        let (addresses, times) =
            (intersection(&addresses, &memory.addresses), intersection(&times, &memory.times));
        Answer { life, addresses, times, says }
    }
}

/// What a timeline has at an address, code that ran ahead of its LOAD with it.
struct CodeThere {
    code: Option<CodeId>,
    /// Which comes later, if there is none yet.
    ahead: Option<CodeId>,
    /// For which addresses and times this is so.
    addresses: Range<u64>,
    times: Range<u64>,
}

impl CodeThere {
    fn of(book: &CodeBook<'_>, timeline: &Timeline, address: u64, time: u64) -> Self {
        let Around { who, mut addresses, times } = timeline.around(address, time);
        let (here, next) = match who {
            Who::Nobody => (None, None),
            Who::Next(next) => (None, Some(next)),
            Who::Here(here) => match book.code(here.code).origin {
                Origin::Dump(_) => (Some(here.code), None),
                // Of a perf map, which tells no times: it gives way to what a dump is about to
                // tell.
                Origin::Map(_) => {
                    let (next, among) = timeline.next_around(address, time);
                    addresses = intersection(&addresses, &among);
                    (Some(here.code), next)
                }
            },
        };
        let Some(next) = next else { return Self { code: here, ahead: None, addresses, times } };
        let near = next.since.saturating_sub(LEAD);
        if time < near {
            let times = intersection(&times, &(0..near));
            return Self { code: here, ahead: Some(next.code), addresses, times };
        }
        let times = intersection(&times, &(near..next.since));
        Self { code: Some(next.code), ahead: None, addresses, times }
    }
}
