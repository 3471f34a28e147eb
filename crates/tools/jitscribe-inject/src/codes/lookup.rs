//! Which code was at an address at a time: looked up for each sample and each entry of its call chain.
//!
//! A long recording looks up few places many times. A result is valid for some addresses and a span of time around the
//! query ([`Timeline::around`]), so the last results are cached. In debug builds, each cached result that is used again
//! is compared with a new lookup.

use std::fmt::Debug;
use std::ops::Range;

use code_timeline::ranges::intersection;
use code_timeline::{AddressSpaceId, Around, CodeId, Inherited, Nearest, Timeline};

use super::code_table::{CodeTable, LateCode, Origin};
use crate::limits::GENERATIONS;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// How long before the time of its LOAD code may have run.
///
/// Writers announce code after they have made it reachable, some in a separate thread: 21 ms were measured with
/// OpenJDK.
const LEAD: u64 = 100_000_000;

/// Number of cached results: as many as fit into a second-level processor cache.
const ANSWERS: usize = 1 << 14;
/// Bytes of code that share a slot of the cache: the size of a small function.
const GRANULE: u64 = 64;
/// Number of cached processes.
const PROCESSES: usize = 1 << 8;

/// What is stored for each code that is found; computed once for each cached result.
pub trait Register {
    /// The value that represents the code.
    type Mark: Copy + PartialEq + Debug;

    /// The value for `code` in the timeline of `owner`, found for `time`.
    fn mark(&mut self, owner: AddressSpaceId, code: CodeId, time: u64) -> Self::Mark;
}

/// Stores only the number of a code.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

impl Register for Numbers {
    type Mark = CodeId;

    fn mark(&mut self, _owner: AddressSpaceId, code: CodeId, _time: u64) -> CodeId {
        code
    }
}

/// Answers which code was at an address, and caches the last results.
pub struct LookupCache<'a, R: Register> {
    context: LookupContext<'a>,
    /// By address space: whose code it runs, if it has no code of its own.
    inherited: Vec<Option<Inherited>>,
    named_by_perf: &'a dyn Fn(u32) -> bool,
    processes: Vec<Option<Process<'a>>>,
    answers: Vec<Option<Answer<R::Mark>>>,
}

/// The data that results are computed from.
#[derive(Clone, Copy)]
struct LookupContext<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    table: &'a CodeTable<'a>,
}

/// A process, in one of its address spaces.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Whether perf names its code without images.
    pub named_by_perf: bool,
    pid: u32,
    space: AddressSpaceId,
    /// The time in which the process id refers to this address space.
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
    /// Before this time, there was none.
    from: u64,
    /// In another address space than the owner's: the last time of the owner of which it has a copy.
    as_of: Option<u64>,
}

/// The occupant of some addresses during a span of time.
#[derive(Clone, Debug)]
pub struct Answer<Mark> {
    space: AddressSpaceId,
    addresses: Range<u64>,
    times: Range<u64>,
    /// The occupant.
    pub occupant: Occupant<Mark>,
}

/// What was at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant<Mark> {
    /// This code ran there.
    Code {
        /// The value that represents it: see [`Register`].
        mark: Mark,
        /// If it is in the timeline of another address space: the last time of that address space of which the
        /// process has a copy.
        as_of: Option<u64>,
    },
    /// No source describes any.
    Nothing {
        /// Whether no file backs the memory: then it is probably jitted code.
        unnamed: bool,
        /// The code that was loaded there later.
        late: Option<CodeId>,
    },
}

impl Process<'_> {
    /// The address space whose code it runs, if any.
    pub fn owner(&self) -> Option<AddressSpaceId> {
        self.lineage.map(|lineage| lineage.owner)
    }

    /// The address space, unless it has a copy of what another one had.
    pub fn own_space(&self) -> Option<AddressSpaceId> {
        self.lineage.is_none_or(|lineage| lineage.as_of.is_none()).then_some(self.space)
    }

    /// Records that `code` was loaded after something else had run at its address.
    pub fn late(&self, code: CodeId) -> Option<LateCode> {
        let Lineage { owner, as_of, .. } = self.lineage?;
        // Within one address space, the code determines everything else.
        Some(LateCode { owner, space: self.space, code, as_of: as_of.unwrap_or(0) })
    }
}

impl<'a, R: Register> LookupCache<'a, R> {
    /// Creates an empty cache. `named_by_perf` says for which processes perf names the code without images.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        table: &'a CodeTable<'a>,
        named_by_perf: &'a dyn Fn(u32) -> bool,
    ) -> Self {
        let (processes, answers) = (vec![None; PROCESSES], vec![None; ANSWERS]);
        let inherited = index.processes.inherited(|space| table.history.timeline(space).is_some());
        let context = LookupContext { index, spaces, table };
        Self { context, inherited, named_by_perf, processes, answers }
    }

    /// The process that `pid` referred to at `time`.
    pub fn process(&mut self, pid: u32, time: u64) -> Option<Process<'a>> {
        let place = pid as usize % PROCESSES;
        if let Some(Some(kept)) = self.processes.get(place)
            && kept.pid == pid
            && (kept.from..kept.until).contains(&time)
        {
            return Some(*kept);
        }
        let processes = &self.context.index.processes;
        let (space, Range { start: from, end: until }) = processes.around(pid, time)?;
        let (lineage, named_by_perf) = (self.lineage(space), (self.named_by_perf)(pid));
        let process = Process { named_by_perf, pid, space, from, until, lineage };
        self.processes[place] = Some(process);
        Some(process)
    }

    fn lineage(&self, space: AddressSpaceId) -> Option<Lineage<'a>> {
        let table = self.context.table;
        if let Some(timeline) = table.history.timeline(space) {
            return Some(Lineage { owner: space, timeline, from: 0, as_of: None });
        }
        let Inherited { space: owner, as_of } = self.inherited.get(space.index()).copied()??;
        let from = self.context.index.processes.from(space);
        Some(Lineage { owner, timeline: table.history.timeline(owner)?, from, as_of: Some(as_of) })
    }

    /// The code at `address` in `process` at `time`. At this time, the process id must refer to this process.
    pub fn at(
        &mut self,
        process: &Process<'_>,
        address: u64,
        time: u64,
        register: &mut R,
    ) -> &mut Answer<R::Mark> {
        let (space, context) = (process.space, self.context);
        let place = (address / GRANULE) as usize ^ space.index().wrapping_mul(ANSWERS / 16 + 1);
        let kept = &mut self.answers[place % ANSWERS];
        let is_it = |kept: &Answer<R::Mark>| {
            kept.space == space && kept.addresses.contains(&address) && kept.times.contains(&time)
        };
        if kept.as_ref().is_some_and(is_it) {
            debug_assert!(kept.as_ref().is_some_and(|kept| {
                let again = context.look_up(process, address, time, register);
                match (kept.occupant, again.occupant) {
                    // Late code is removed from the cached result when it is recorded.
                    (
                        Occupant::Nothing { unnamed, late: None },
                        Occupant::Nothing { unnamed: again, .. },
                    ) => unnamed == again,
                    (kept, again) => kept == again,
                }
            }));
        } else {
            *kept = None;
        }
        kept.get_or_insert_with(|| context.look_up(process, address, time, register))
    }
}

impl LookupContext<'_> {
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
                // Inherited code does not change any more.
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

/// The addresses and times for which a result is valid.
struct Vacant {
    addresses: Range<u64>,
    times: Range<u64>,
}

impl LookupContext<'_> {
    /// The code at `address` that `owner` shares with an address space that it was forked from: that address space, the
    /// code, and the last time of it of which `owner` has a copy. Reduces `vacant` to where the result is the same.
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

/// The code that a timeline has at an address, including code that ran before the time of its LOAD.
struct CodeThere {
    code: Option<CodeId>,
    /// The code that is loaded there later, if there is none yet.
    late: Option<CodeId>,
    /// The addresses and times for which this is valid.
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
                Origin::Dump(_) | Origin::Inferred(_) => (Some(here.code), None),
                // Perf maps have no times: code of a dump that is loaded next takes precedence.
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
