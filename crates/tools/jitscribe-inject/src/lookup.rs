//! Which code was at an address at a time: asked for each sample and each entry of its call chain.
//!
//! A long recording asks for few places again and again. An answer is good for some addresses and a
//! span of time around what was asked ([`Timeline::around`]), so the last ones are kept; in debug
//! builds each that serves again is looked up anew and compared.

use std::fmt::Debug;
use std::ops::Range;

use code_timeline::ranges::intersection;
use code_timeline::{AddressSpaceId, Around, CodeId, Inherited, Nearest, Timeline};

use super::address_space::AddressSpaces;
use super::code_table::{CodeTable, LateCode, Origin};
use super::limits::GENERATIONS;
use super::recording_index::RecordingIndex;
use super::sampled::{SampledCodes, SampledId};

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

/// What is kept of each code that is found: made once for each answer that is kept.
pub trait Register {
    /// What stands for the code.
    type Mark: Copy + PartialEq + Debug;

    /// What stands for `code` in the timeline of `owner`, which was found for `time`.
    fn mark(&mut self, owner: AddressSpaceId, code: CodeId, time: u64) -> Self::Mark;
}

/// Keeps no more of a code than its number.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

impl Register for Numbers {
    type Mark = CodeId;

    fn mark(&mut self, _owner: AddressSpaceId, code: CodeId, _time: u64) -> CodeId {
        code
    }
}

impl Register for SampledCodes {
    type Mark = SampledId;

    fn mark(&mut self, owner: AddressSpaceId, code: CodeId, time: u64) -> SampledId {
        self.id(owner, code, time)
    }
}

/// Answers which code was where, and keeps the last answers.
pub struct LookupCache<'a, R: Register> {
    known: Known<'a>,
    /// By life: whose code it runs, if it has none of its own.
    inherited: Vec<Option<Inherited>>,
    named_by_perf: &'a dyn Fn(u32) -> bool,
    processes: Vec<Option<Process<'a>>>,
    answers: Vec<Option<Answer<R::Mark>>>,
}

/// All that answers are made of.
#[derive(Clone, Copy)]
struct Known<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    table: &'a CodeTable<'a>,
}

/// A process during one of its lives.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Whether perf names its code by itself.
    pub named_by_perf: bool,
    pid: u32,
    space: AddressSpaceId,
    /// From when until when the process id means this life.
    from: u64,
    until: u64,
    lineage: Option<Lineage<'a>>,
}

/// Whose code a process runs: its own or, if it has none, that of the nearest process that it was
/// forked from.
#[derive(Clone, Copy, Debug)]
struct Lineage<'a> {
    owner: AddressSpaceId,
    timeline: &'a Timeline,
    /// Before this, there was none.
    from: u64,
    /// In another life than the owner's: until when it has what the owner had.
    as_of: Option<u64>,
}

/// Who ran at some addresses during a span of time.
#[derive(Clone, Debug)]
pub struct Answer<Mark> {
    space: AddressSpaceId,
    addresses: Range<u64>,
    times: Range<u64>,
    /// What is known.
    pub occupant: Occupant<Mark>,
}

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant<Mark> {
    /// This code ran there.
    Code {
        /// What stands for it: see [`Register`].
        mark: Mark,
        /// In whose timeline it stands, if not in that of the process's own life: the last time of
        /// which the process has what that life had.
        as_of: Option<u64>,
    },
    /// No source knows.
    Nothing {
        /// Whether the memory is no file's: jitted code, as far as anyone can tell.
        unnamed: bool,
        /// Which code came there later.
        late: Option<CodeId>,
    },
}

impl<Mark> Answer<Mark> {
    /// Whether it is the answer for `address`, too, at the same time.
    pub fn is_for(&self, address: u64) -> bool {
        self.addresses.contains(&address)
    }
}

impl Process<'_> {
    /// That `code` came after something else had run in its place.
    pub fn late(&self, code: CodeId) -> Option<LateCode> {
        let Lineage { owner, as_of, .. } = self.lineage?;
        // Of one life all is told by the code.
        Some(LateCode { owner, space: self.space, code, as_of: as_of.unwrap_or(0) })
    }
}

impl<'a, R: Register> LookupCache<'a, R> {
    /// No answers yet. `named_by_perf` says of which processes perf names the code by itself.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        table: &'a CodeTable<'a>,
        named_by_perf: &'a dyn Fn(u32) -> bool,
    ) -> Self {
        let (processes, answers) = (vec![None; PROCESSES], vec![None; ANSWERS]);
        let inherited = index.processes.inherited(|space| table.history.timeline(space).is_some());
        let known = Known { index, spaces, table };
        Self { known, inherited, named_by_perf, processes, answers }
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
        let processes = &self.known.index.processes;
        let (space, Range { start: from, end: until }) = processes.around(pid, time)?;
        let (lineage, named_by_perf) = (self.lineage(space), (self.named_by_perf)(pid));
        let process = Process { named_by_perf, pid, space, from, until, lineage };
        self.processes[place] = Some(process);
        Some(process)
    }

    fn lineage(&self, space: AddressSpaceId) -> Option<Lineage<'a>> {
        let table = self.known.table;
        if let Some(timeline) = table.history.timeline(space) {
            return Some(Lineage { owner: space, timeline, from: 0, as_of: None });
        }
        let Inherited { space: owner, as_of } = self.inherited.get(space.index()).copied()??;
        let from = self.known.index.processes.from(space);
        Some(Lineage { owner, timeline: table.history.timeline(owner)?, from, as_of: Some(as_of) })
    }

    /// Which code was at `address` in `process` at `time`, at which the process id means this process.
    pub fn at(
        &mut self,
        process: &Process<'_>,
        address: u64,
        time: u64,
        register: &mut R,
    ) -> &mut Answer<R::Mark> {
        let (space, known) = (process.space, self.known);
        let place = (address / GRANULE) as usize ^ space.index().wrapping_mul(ANSWERS / 16 + 1);
        let kept = &mut self.answers[place % ANSWERS];
        let is_it = |kept: &Answer<R::Mark>| {
            kept.space == space && kept.addresses.contains(&address) && kept.times.contains(&time)
        };
        if kept.as_ref().is_some_and(is_it) {
            debug_assert!(kept.as_ref().is_some_and(|kept| {
                let anew = known.look_up(process, address, time, register);
                match (kept.occupant, anew.occupant) {
                    // It is taken out when it is told.
                    (
                        Occupant::Nothing { unnamed, late: None },
                        Occupant::Nothing { unnamed: anew, .. },
                    ) => unnamed == anew,
                    (kept, anew) => kept == anew,
                }
            }));
        } else {
            *kept = None;
        }
        kept.get_or_insert_with(|| known.look_up(process, address, time, register))
    }
}

impl Known<'_> {
    fn look_up<R: Register>(
        &self,
        process: &Process<'_>,
        address: u64,
        time: u64,
        register: &mut R,
    ) -> Answer<R::Mark> {
        let space = process.space;
        let all = 0..u64::MAX;
        let (addresses, times, late) = match process.lineage {
            None => (all.clone(), all, None),
            Some(Lineage { from, .. }) if time < from => (all, 0..from, None),
            Some(Lineage { owner, timeline, from, as_of }) => {
                let there =
                    CodeThere::look_up(self.table, timeline, address, as_of.unwrap_or(time));
                // Code that is kept for a child does not change any more.
                let times = if as_of.is_some() { from..u64::MAX } else { there.times };
                if let Some(code) = there.code {
                    let mark = register.mark(owner, code, as_of.unwrap_or(time));
                    let occupant = Occupant::Code { mark, as_of };
                    return Answer { space, addresses: there.addresses, times, occupant };
                }
                let mut vacant = Vacant { addresses: there.addresses, times };
                if let Some((owner, code, as_of)) =
                    self.shared(owner, address, time, as_of, &mut vacant)
                {
                    let mark = register.mark(owner, code, as_of);
                    let occupant = Occupant::Code { mark, as_of: Some(as_of) };
                    let Vacant { addresses, times } = vacant;
                    return Answer { space, addresses, times, occupant };
                }
                (vacant.addresses, vacant.times, there.late)
            }
        };
        let memory = self.spaces.around(self.index, space, address, time);
        let occupant = Occupant::Nothing { unnamed: memory.is_anonymous, late };
        let (addresses, times) =
            (intersection(&addresses, &memory.addresses), intersection(&times, &memory.times));
        Answer { space, addresses, times, occupant }
    }
}

/// At which addresses and times one thing is so.
struct Vacant {
    addresses: Range<u64>,
    times: Range<u64>,
}

impl Known<'_> {
    /// What `owner` has at `address` from those that it shares code with: whose it is, which, and the
    /// last time of which it has what was there. `vacant` becomes where the answer is the same.
    fn shared(
        &self,
        owner: AddressSpaceId,
        address: u64,
        time: u64,
        as_of: Option<u64>,
        vacant: &mut Vacant,
    ) -> Option<(AddressSpaceId, CodeId, u64)> {
        let (mut space, mut at, mut is_own) = (owner, as_of.unwrap_or(time), as_of.is_none());
        let mut heirs = Vec::new();
        for _ in 0..GENERATIONS {
            heirs.push((space, at, is_own));
            let (from, addresses, times) =
                self.table.history.shared(&self.index.processes, space, address, at)?;
            vacant.addresses = intersection(&vacant.addresses, &addresses);
            if is_own {
                vacant.times = intersection(&vacant.times, &times);
            }
            let Inherited { space: next, as_of } = from?;
            let there =
                CodeThere::look_up(self.table, self.table.history.timeline(next)?, address, as_of);
            vacant.addresses = intersection(&vacant.addresses, &there.addresses);
            if let Some(code) = there.code {
                for (heir, at, is_own) in heirs {
                    let Some(taken) = self.table.history.moved_away(heir, code) else { continue };
                    let times = if taken <= at { taken..u64::MAX } else { 0..taken };
                    if is_own {
                        vacant.times = intersection(&vacant.times, &times);
                    }
                    if taken <= at {
                        return None;
                    }
                }
                return Some((next, code, as_of));
            }
            (space, at, is_own) = (next, as_of, false);
        }
        None
    }
}

/// What a timeline has at an address, code that ran ahead of its LOAD with it.
struct CodeThere {
    code: Option<CodeId>,
    /// Which comes later, if there is none yet.
    late: Option<CodeId>,
    /// For which addresses and times this is so.
    addresses: Range<u64>,
    times: Range<u64>,
}

impl CodeThere {
    fn look_up(table: &CodeTable<'_>, timeline: &Timeline, address: u64, time: u64) -> Self {
        let Around { nearest, mut addresses, times } = timeline.around(address, time);
        let (here, next) = match nearest {
            Nearest::Never => (None, None),
            Nearest::Next(next) => (None, Some(next)),
            Nearest::Current(here) => match table.history.code(here.code).origin {
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
        let Some(next) = next else { return Self { code: here, late: None, addresses, times } };
        let near = next.since.saturating_sub(LEAD);
        if time < near {
            let times = intersection(&times, &(0..near));
            return Self { code: here, late: Some(next.code), addresses, times };
        }
        let times = intersection(&times, &(near..next.since));
        Self { code: Some(next.code), late: None, addresses, times }
    }
}
