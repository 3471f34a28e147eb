//! The code events of all processes, and the code at each address that results from them.
//!
//! This is the only place that defines what the events mean:
//!
//! * A **load** puts code at its addresses. The parts of earlier code that it covers are gone; the rest stays.
//! * A **move** takes one code from its place to another address, where it has the effect of a load.
//!   [`moved_code`](crate::moved_code) defines which code it is.
//! * An **unload** removes the code, wherever it was moved before, except where other code covers it.
//! * A **clear** removes all code in a range: a file was mapped there.
//! * A **fork** gives the child what the parent had just before. After that, the two are independent.
//!
//! Events are processed in the order of their times. At equal times, a clear comes first, because code is put into
//! memory that was mapped for it. All others keep the order in which they were added, which is that of the file.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::ops::Range;

use crate::moves::{Moves, Place};
use crate::piece::{CodeId, Piece};
use crate::process::{AddressSpaceId, Inherited, Processes};
use crate::ranges;
use crate::timeline::{Around, Nearest, Timeline, TimelineBuilder};

/// One piece of code at one place. Moved code is a separate piece at each place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code<Origin> {
    /// Address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The caller's data. Code that was moved has the same data at each place.
    pub origin: Origin,
}

impl<Origin> Code<Origin> {
    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

/// The number of a MOVE, in the order in which they are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveId(u32);

/// The number of a LOAD in its source, for [`SourceBuilder::unload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(CodeId);

#[derive(Clone, Copy, Debug)]
enum Event {
    Load(CodeId),
    Unload(CodeId),
    Move(MoveId),
    /// Index in the list of cleared ranges.
    Clear(u32),
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Unresolved { index: u64, old_address: u64, new_address: u64 },
    Resolved { old: CodeId, new: CodeId },
    Unmatched,
}

/// The code that a MOVE refers to, at its old and at its new place; `None` if it refers to none.
fn moved(moves: &[Move], id: MoveId) -> Option<(CodeId, CodeId)> {
    match moves.get(id.0 as usize) {
        Some(&Move::Resolved { old, new }) => Some((old, new)),
        _ => None,
    }
}

/// Collects events, source by source and in any order of time.
#[derive(Debug)]
pub struct HistoryBuilder<Origin> {
    codes: Vec<Code<Origin>>,
    /// The events of each address space, in the order in which they were added.
    events: BTreeMap<AddressSpaceId, Vec<(u64, Event)>>,
    moves: Vec<Move>,
    cleared: Vec<Range<u64>>,
    /// For code that was moved before it was unloaded: its id at that time.
    unloaded_as: BTreeMap<CodeId, CodeId>,
}

impl<Origin> Default for HistoryBuilder<Origin> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            events: BTreeMap::new(),
            moves: Vec::new(),
            cleared: Vec::new(),
            unloaded_as: BTreeMap::new(),
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl<Origin> HistoryBuilder<Origin> {
    /// A history without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves space for this many loads of `space`. Memory that is not touched costs nothing.
    pub fn reserve(&mut self, space: AddressSpaceId, loads: usize) {
        self.codes.reserve(loads);
        self.events.entry(space).or_default().reserve(loads);
    }

    /// The number of pieces of code so far; moved code counts once for each place.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no code so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Adds code that was loaded at `time`. Code of size 0 has no effect.
    pub fn load(&mut self, space: AddressSpaceId, time: u64, code: Code<Origin>) -> CodeId {
        let id = self.push(code);
        self.add_event(space, time, Event::Load(id));
        id
    }

    /// Begins a source, whose indices are independent of those of other sources.
    pub fn source(&mut self) -> SourceBuilder<'_, Origin> {
        SourceBuilder {
            first: self.codes.len(),
            history: self,
            indices: Vec::new(),
            begins: BTreeMap::new(),
            last: None,
            loads_before: Vec::new(),
        }
    }

    /// Whether `space` has any code event.
    #[must_use]
    pub fn has_code(&self, space: AddressSpaceId) -> bool {
        self.events.get(&space).is_some_and(|events| !events.is_empty())
    }

    /// Records that something else was put into `range` at `time`, so that no code is there any more. Has no effect
    /// for an address space without code events so far.
    pub fn clear(&mut self, space: AddressSpaceId, time: u64, range: Range<u64>) {
        if self.has_code(space) {
            let event = Event::Clear(number(self.cleared.len()));
            self.cleared.push(range);
            self.add_event(space, time, event);
        }
    }

    fn push(&mut self, code: Code<Origin>) -> CodeId {
        let id = CodeId(number(self.codes.len()));
        self.codes.push(code);
        id
    }

    fn add_event(&mut self, space: AddressSpaceId, time: u64, event: Event) {
        self.events.entry(space).or_default().push((time, event));
    }

    /// The codes of `space` in the order of their arrival, whatever happened to them later. Use this to look up
    /// addresses that have no times. Moved code appears once for each place.
    #[must_use]
    pub fn into_arrivals(mut self, space: AddressSpaceId) -> Vec<Code<Origin>> {
        let mut events = self.events.remove(&space).unwrap_or_default();
        sort_events(&mut events);
        let mut codes: Vec<Option<Code<Origin>>> = self.codes.into_iter().map(Some).collect();
        let arrival = |&(_, event): &(u64, Event)| match event {
            Event::Load(id) => Some(id),
            Event::Move(id) => moved(&self.moves, id).map(|(_, new)| new),
            Event::Unload(_) | Event::Clear(_) => None,
        };
        events
            .iter()
            .filter_map(arrival)
            .filter_map(|id| codes.get_mut(id.index())?.take())
            .collect()
    }

    /// Sorts and evaluates all events. `processes` determines which process was forked from which.
    ///
    /// A child that loads its own code gets a copy of what it inherited, as long as all copies together have at most
    /// `copied` pieces. Other children share it with the address space they inherited it from, so that neither time nor
    /// memory grows with the square of the events.
    #[must_use]
    pub fn finish(mut self, processes: &Processes, copied: usize) -> History<Origin> {
        self.events.retain(|_, events| !events.is_empty());
        let mut events = core::mem::take(&mut self.events);
        let has_code: BTreeSet<AddressSpaceId> = events.keys().copied().collect();
        let mut spaces: Vec<AddressSpaceId> = has_code.iter().copied().collect();
        spaces.sort_by_key(|&space| processes.from(space));
        let load_times = match spaces.iter().any(|&space| processes.parent(space).is_some()) {
            true => self.load_times(&events),
            false => Vec::new(),
        };
        let inherited = OnceCell::new();
        let mut left = copied;
        let (mut timelines, mut sharing) =
            (BTreeMap::<AddressSpaceId, Timeline>::new(), BTreeMap::new());
        for space in spaces {
            let mut own_events = events.remove(&space).unwrap_or_default();
            sort_events(&mut own_events);
            let mut builder = TimelineBuilder::with_capacity(own_events.len());
            let mut overwritten = None;
            if let Some((_, forked)) = processes.parent(space)
                && let Some(from) = inherited
                    .get_or_init(|| processes.inherited(|space| has_code.contains(&space)))
                    .get(space.index())
                    .copied()
                    .flatten()
                && let Some(timeline) = timelines.get(&from.space)
            {
                let pieces = timeline.pieces();
                if pieces.len() <= left && !sharing.contains_key(&from.space) {
                    left -= pieces.len();
                    for piece in pieces {
                        if piece.since <= from.as_of && from.as_of < piece.until {
                            builder.load(forked, piece.range.clone(), piece.code);
                        }
                    }
                } else {
                    overwritten = Some((from, TimelineBuilder::new(), BTreeMap::new()));
                }
            }
            for (time, event) in own_events {
                if let (Some((.., moved_away)), Event::Move(id)) = (&mut overwritten, event)
                    && let Some((old, _)) = moved(&self.moves, id)
                {
                    moved_away.entry(old).or_insert(time);
                }
                for step in self.steps(event).into_iter().flatten() {
                    if let (Some((_, overwritten, _)), Step::Load(range, _) | Step::Clear(range)) =
                        (&mut overwritten, &step)
                    {
                        overwritten.load(time, range.clone(), CodeId(0));
                    }
                    match step {
                        Step::Load(range, code) => builder.load(time, range, code),
                        Step::Unload(range, code) => builder.unload(time, range, code),
                        Step::Clear(range) => builder.clear(time, range),
                    }
                }
            }
            timelines.insert(space, builder.finish());
            if let Some((from, overwritten, moved_away)) = overwritten {
                sharing
                    .insert(space, Sharing { from, overwritten: overwritten.finish(), moved_away });
            }
        }
        History { codes: self.codes, moves: self.moves, load_times, timelines, sharing }
    }

    /// The time at which each code was loaded, indexed by its number.
    fn load_times(&self, events: &BTreeMap<AddressSpaceId, Vec<(u64, Event)>>) -> Vec<u64> {
        let mut load_times = alloc::vec![0; self.codes.len()];
        for &(time, event) in events.values().flatten() {
            for step in self.steps(event).into_iter().flatten() {
                if let Step::Load(_, code) = step
                    && let Some(place) = load_times.get_mut(code.index())
                {
                    *place = time;
                }
            }
        }
        load_times
    }

    /// The effect of an event on a timeline.
    fn steps(&self, event: Event) -> [Option<Step>; 2] {
        let range = |id: CodeId| self.codes.get(id.index()).map(Code::range);
        let load = |id| Some(Step::Load(range(id)?, id));
        let unload = |id| Some(Step::Unload(range(id)?, id));
        match event {
            Event::Load(id) => [load(id), None],
            Event::Unload(id) => [unload(self.unloaded_as.get(&id).copied().unwrap_or(id)), None],
            Event::Move(id) => match moved(&self.moves, id) {
                Some((old, new)) => [unload(old), load(new)],
                None => [None, None],
            },
            Event::Clear(number) => {
                [self.cleared.get(number as usize).cloned().map(Step::Clear), None]
            }
        }
    }
}

/// Sorts events into the order in which they are processed. The sort is stable. At equal times, code comes after the
/// mapping that contains it.
fn sort_events(events: &mut [(u64, Event)]) {
    events.sort_by_key(|&(time, event)| (time, !matches!(event, Event::Clear(_))));
}

/// A change of a timeline.
enum Step {
    Load(Range<u64>, CodeId),
    Unload(Range<u64>, CodeId),
    Clear(Range<u64>),
}

/// Takes the events of one source, in the order of the file. End it with [`Self::finish`]; otherwise its moves refer
/// to no code.
#[derive(Debug)]
pub struct SourceBuilder<'h, Origin> {
    history: &'h mut HistoryBuilder<Origin>,
    /// The number of codes before this source.
    first: usize,
    /// The index of each code of this source, at its load.
    indices: Vec<u64>,
    /// For each address space, the position where this source's events begin.
    begins: BTreeMap<AddressSpaceId, usize>,
    /// The address space of the last event.
    last: Option<AddressSpaceId>,
    /// For each move of this source, the number of loads added before it.
    loads_before: Vec<usize>,
}

impl<Origin: Clone> SourceBuilder<'_, Origin> {
    /// Adds code that was loaded at `time`; moves refer to it by `index` from then on. Code of size 0 has no effect.
    pub fn load(
        &mut self,
        space: AddressSpaceId,
        time: u64,
        index: u64,
        code: Code<Origin>,
    ) -> LoadId {
        self.indices.push(index);
        let id = self.history.push(code);
        self.add_event(space, time, Event::Load(id));
        LoadId(id)
    }

    /// Records that the code that was loaded as `code` was unloaded at `time`, wherever it was at that time.
    pub fn unload(&mut self, space: AddressSpaceId, time: u64, code: LoadId) {
        self.add_event(space, time, Event::Unload(code.0));
    }

    /// Records that a code was moved at `time`. The index and the old address determine [which](crate::moved_code).
    ///
    /// It must be code of this source that was loaded before, in `space` or, before the fork, in an address space that
    /// `space` was forked from, and that was not unloaded.
    pub fn moved(
        &mut self,
        space: AddressSpaceId,
        time: u64,
        index: u64,
        old_address: u64,
        new_address: u64,
    ) -> MoveId {
        let id = MoveId(number(self.history.moves.len()));
        self.history.moves.push(Move::Unresolved { index, old_address, new_address });
        self.add_event(space, time, Event::Move(id));
        self.loads_before.push(self.indices.len());
        id
    }

    fn add_event(&mut self, space: AddressSpaceId, time: u64, event: Event) {
        let events = self.history.events.entry(space).or_default();
        if self.last != Some(space) {
            self.begins.entry(space).or_insert(events.len());
            self.last = Some(space);
        }
        events.push((time, event));
    }

    /// Determines which code each MOVE refers to. Few sources have any, so the tables for this are built only here.
    pub fn finish(self, processes: &Processes) {
        let Self { history, first, indices, begins, loads_before, .. } = self;
        if loads_before.is_empty() {
            return;
        }
        // A child needs the state of its parent at the fork.
        let mut spaces: Vec<(AddressSpaceId, usize)> = begins.into_iter().collect();
        spaces.sort_by_key(|&(space, _)| processes.from(space));
        let mut moves = Moves::default();
        let mut unloaded_as = Vec::new();
        for &(space, begin) in &spaces {
            let own_events = history.events.get(&space).and_then(|events| events.get(begin..));
            let mut events = own_events.unwrap_or_default().to_vec();
            sort_events(&mut events);
            let lineage = processes.lineage(space);
            for (time, event) in events {
                let when = (space, time);
                match event {
                    Event::Load(id) => {
                        let index = id.index().checked_sub(first).and_then(|at| indices.get(at));
                        let code = history.codes.get(id.index()).filter(|code| code.size > 0);
                        if let (Some(&index), Some(code)) = (index, code) {
                            moves.load(when, index, id, code.address);
                        }
                    }
                    Event::Unload(id) => {
                        let last = moves.unload(when, &lineage, id);
                        unloaded_as.extend(last.filter(|&last| last != id).map(|last| (id, last)));
                    }
                    Event::Move(id) => history.resolve(id, when, &lineage, &mut moves),
                    Event::Clear(_) => {}
                }
            }
        }
        let numbers = history.renumber(first, indices.len(), &loads_before);
        let numbered = |id: CodeId| {
            let at = id.index().checked_sub(first).and_then(|at| numbers.get(at));
            at.map_or(id, |&number| CodeId(number))
        };
        for (space, begin) in spaces {
            let events = history.events.get_mut(&space).and_then(|events| events.get_mut(begin..));
            for (_, event) in events.unwrap_or_default() {
                if let Event::Load(id) | Event::Unload(id) = event {
                    *id = numbered(*id);
                }
            }
        }
        let own = history.moves.len().saturating_sub(loads_before.len());
        for own in history.moves.iter_mut().skip(own) {
            if let Move::Resolved { old, new } = own {
                (*old, *new) = (numbered(*old), numbered(*new));
            }
        }
        let unloaded_as = unloaded_as.into_iter().map(|(id, last)| (numbered(id), numbered(last)));
        history.unloaded_as.extend(unloaded_as);
    }
}

impl<Origin> HistoryBuilder<Origin> {
    /// Renumbers the codes from `first` on in the order in which they were added: of codes with the same time, the
    /// higher number is the later. Until now, moved code has the numbers behind all of the source's `loads`. Returns
    /// the new numbers, indexed by the old ones.
    fn renumber(&mut self, first: usize, loads: usize, loads_before: &[usize]) -> Vec<u32> {
        let codes = self.codes.split_off(first);
        let mut numbers = alloc::vec![0; codes.len()];
        let mut next = (number(first)..).take(codes.len());
        let mut assign = |at: usize| {
            if let Some(place) = numbers.get_mut(at) {
                *place = next.next().unwrap_or(u32::MAX);
            }
        };
        let own = self.moves.len().saturating_sub(loads_before.len());
        let moves = self.moves.get(own..).unwrap_or_default();
        let mut moves = moves.iter().zip(loads_before).peekable();
        for load in 0..=loads {
            while let Some((moved, _)) = moves.next_if(|&(_, &before)| before <= load) {
                if let Move::Resolved { new, .. } = moved {
                    assign(new.index().saturating_sub(first));
                }
            }
            if load < loads {
                assign(load);
            }
        }
        let mut codes: Vec<(u32, Code<Origin>)> = numbers.iter().copied().zip(codes).collect();
        codes.sort_unstable_by_key(|(number, _)| *number);
        self.codes.extend(codes.into_iter().map(|(_, code)| code));
        numbers
    }
}

impl<Origin: Clone> HistoryBuilder<Origin> {
    fn resolve(
        &mut self,
        id: MoveId,
        when: (AddressSpaceId, u64),
        lineage: &[Inherited],
        moves: &mut Moves,
    ) {
        let Some(&Move::Unresolved { index, old_address, new_address }) =
            self.moves.get(id.0 as usize)
        else {
            return;
        };
        let mut outcome = Move::Unmatched;
        if let Some((code, Place { here: old, .. })) = moves.find(lineage, index, old_address)
            && let Some(moved) = self.codes.get(old.index()).cloned()
        {
            let new = self.push(Code { address: new_address, ..moved });
            moves.put(when, code, Place { address: new_address, here: new });
            outcome = Move::Resolved { old, new };
        }
        if let Some(place) = self.moves.get_mut(id.0 as usize) {
            *place = outcome;
        }
    }
}

/// The code events of all processes, evaluated.
#[derive(Debug)]
pub struct History<Origin> {
    codes: Vec<Code<Origin>>,
    moves: Vec<Move>,
    /// When each code was loaded. Filled only if any was inherited.
    load_times: Vec<u64>,
    timelines: BTreeMap<AddressSpaceId, Timeline>,
    /// The address spaces whose timelines contain only their own code. What they inherited is looked up in the address
    /// space that they inherited it from.
    sharing: BTreeMap<AddressSpaceId, Sharing>,
}

/// What an address space shares with others.
#[derive(Debug)]
struct Sharing {
    from: Inherited,
    /// Where it has put something else since.
    overwritten: Timeline,
    /// Code that it moved away, and when.
    moved_away: BTreeMap<CodeId, u64>,
}

impl<Origin> Default for History<Origin> {
    fn default() -> Self {
        let (codes, moves, load_times) = (Vec::new(), Vec::new(), Vec::new());
        Self { codes, moves, load_times, timelines: BTreeMap::new(), sharing: BTreeMap::new() }
    }
}

impl<Origin> History<Origin> {
    /// The code with this number.
    #[must_use]
    pub fn code(&self, id: CodeId) -> &Code<Origin> {
        &self.codes[id.index()]
    }

    /// The number of pieces of code; moved code counts once for each place.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The code that a MOVE refers to, at its new place; `None` if it refers to none.
    #[must_use]
    pub fn moved(&self, id: MoveId) -> Option<CodeId> {
        moved(&self.moves, id).map(|(_, new)| new)
    }

    /// A key that orders codes that a timeline has since the same time: the later code has the greater key. A child
    /// has everything that it inherited since the fork.
    #[must_use]
    pub fn order(&self, id: CodeId) -> (u64, CodeId) {
        (self.load_times.get(id.index()).copied().unwrap_or(0), id)
    }

    /// The timeline of each address space that has code of its own.
    pub fn timelines(&self) -> impl Iterator<Item = (AddressSpaceId, &Timeline)> {
        self.timelines.iter().map(|(&space, timeline)| (space, timeline))
    }

    /// The timeline of `space`, if it has code of its own.
    #[must_use]
    pub fn timeline(&self, space: AddressSpaceId) -> Option<&Timeline> {
        self.timelines.get(&space)
    }

    /// The code that `space` had at `address` at `time`, its own or inherited.
    ///
    /// This follows the forks for each query. To query many addresses, cache the results of [`Processes::inherited`],
    /// [`Timeline::around`] and [`Self::shared`].
    #[must_use]
    pub fn at(
        &self,
        processes: &Processes,
        space: AddressSpaceId,
        address: u64,
        time: u64,
    ) -> Option<CodeId> {
        let (mut space, mut time) = (space, time);
        let mut heirs = Vec::new();
        loop {
            if let Some(timeline) = self.timelines.get(&space) {
                if let Some(piece) = timeline.at(address, time) {
                    let is_taken = |&(heir, time): &(AddressSpaceId, u64)| {
                        self.moved_away(heir, piece.code)
                            .is_some_and(|moved_away| moved_away <= time)
                    };
                    return (!heirs.iter().any(is_taken)).then_some(piece.code);
                }
                heirs.push((space, time));
                let (from, ..) = self.shared(processes, space, address, time)?;
                let from = from?;
                (space, time) = (from.space, from.as_of);
            } else {
                let (parent, forked) = processes.parent(space)?;
                if time < forked {
                    return None;
                }
                (space, time) = (parent, forked.saturating_sub(1));
            }
        }
    }

    /// Whether `space` has more code than its timeline contains: code that it inherited, and shares with the address
    /// space it inherited it from.
    #[must_use]
    pub fn is_sharing(&self, space: AddressSpaceId) -> bool {
        self.sharing.contains_key(&space)
    }

    /// The address space from which `space` has what is at `address` at `time`, if that is not its own, and the
    /// addresses and times for which this is valid. Call this only where its own timeline has nothing.
    #[must_use]
    pub fn shared(
        &self,
        processes: &Processes,
        space: AddressSpaceId,
        address: u64,
        time: u64,
    ) -> Option<(Option<Inherited>, Range<u64>, Range<u64>)> {
        let Sharing { from, overwritten, .. } = self.sharing.get(&space)?;
        let began = processes.from(space);
        if time < began {
            return Some((None, 0..u64::MAX, 0..began));
        }
        let Around { nearest, addresses, times } = overwritten.around(address, time);
        let from = (!matches!(nearest, Nearest::Current(_))).then_some(*from);
        Some((from, addresses, ranges::intersection(&times, &(began..u64::MAX))))
    }

    /// When `space` moved `code` away, which it shares with the address space it inherited it from. [`Self::shared`]
    /// covers where it put something else, but not this.
    #[must_use]
    pub fn moved_away(&self, space: AddressSpaceId, code: CodeId) -> Option<u64> {
        self.sharing.get(&space)?.moved_away.get(&code).copied()
    }

    /// Whether any address space that `space` shares code with, at most `generations` away, had code within `range`.
    #[must_use]
    pub fn is_shared_within(
        &self,
        space: AddressSpaceId,
        range: &Range<u64>,
        generations: usize,
    ) -> bool {
        let from = |space| self.sharing.get(&space).map(|sharing| sharing.from.space);
        let mut others =
            core::iter::successors(from(space), |&space| from(space)).take(generations);
        others.any(|space| {
            self.timelines.get(&space).is_some_and(|code| !code.pieces_over(range).is_empty())
        })
    }

    /// Adds codes to `space` where and when it has none, each with the time in which it is there. Events never put these codes
    /// there: use this for what is concluded from them. A code that overlaps another in address and time is left out. Returns
    /// the number of codes that were added.
    pub fn fill(
        &mut self,
        space: AddressSpaceId,
        codes: impl IntoIterator<Item = (Code<Origin>, Range<u64>)>,
    ) -> usize {
        let timeline = self.timelines.get(&space);
        let mut added: Vec<(Piece, Code<Origin>)> = Vec::new();
        for (code, times) in codes {
            let range = code.range();
            let overlaps = |piece: &Piece| {
                let addresses = ranges::intersection(&piece.range, &range);
                !addresses.is_empty() && piece.since < times.end && times.start < piece.until
            };
            let there = timeline.map_or(&[][..], |timeline| timeline.pieces_over(&range));
            if range.is_empty() || times.is_empty() || there.iter().any(overlaps) {
                continue;
            }
            let piece = Piece { range, since: times.start, until: times.end, code: CodeId(0) };
            added.push((piece, code));
        }
        added.sort_by_key(|(piece, _)| (piece.range.start, piece.since));
        // Of those that were accepted, the ones that reach behind the start of the current one.
        let mut near: Vec<Piece> = Vec::new();
        added.retain(|(piece, _)| {
            near.retain(|other| other.range.end > piece.range.start);
            let overlaps = |other: &Piece| other.since < piece.until && piece.since < other.until;
            let is_free = !near.iter().any(overlaps);
            if is_free {
                near.push(piece.clone());
            }
            is_free
        });
        let count = added.len();
        if count == 0 {
            return 0;
        }
        let timeline = self.timelines.entry(space).or_default();
        let mut pieces = timeline.pieces().to_vec();
        for (mut piece, code) in added {
            piece.code = CodeId(number(self.codes.len()));
            self.codes.push(code);
            pieces.push(piece);
        }
        *timeline = Timeline::of(pieces);
        count
    }

    /// Frees the timelines. Queries by address and time are no longer possible; queries by id still are.
    pub fn forget_timelines(&mut self) {
        self.timelines = BTreeMap::new();
        self.sharing = BTreeMap::new();
    }
}
