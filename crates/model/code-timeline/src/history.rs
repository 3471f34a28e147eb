//! The code events of all processes, and the code at each address that results from them.
//!
//! This is the only place that defines what the events mean:
//!
//! * A **load** puts code at its addresses. The parts of earlier code that it covers are gone; the rest stays.
//! * A **move** takes one code from its place to another address, where it has the effect of a load.
//!   [`meant`](crate::meant) defines which code it is.
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
use crate::piece::CodeId;
use crate::process::{Inherited, LifeId, Processes};
use crate::ranges;
use crate::timeline::{Around, Timeline, TimelineBuilder, Who};

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

/// The number of a LOAD in its source, for [`SourceBuilder::died`].
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
    Told { index: u64, old_address: u64, new_address: u64 },
    Of { old: CodeId, new: CodeId },
    OfNone,
}

/// The code that a MOVE refers to, at its old and at its new place; `None` if it refers to none.
fn moved(moves: &[Move], id: MoveId) -> Option<(CodeId, CodeId)> {
    match moves.get(id.0 as usize) {
        Some(&Move::Of { old, new }) => Some((old, new)),
        _ => None,
    }
}

/// Collects events, source by source and in any order of time.
#[derive(Debug)]
pub struct HistoryBuilder<Origin> {
    codes: Vec<Code<Origin>>,
    /// The events of each life, in the order in which they were added.
    events: BTreeMap<LifeId, Vec<(u64, Event)>>,
    moves: Vec<Move>,
    cleared: Vec<Range<u64>>,
    /// For code that was moved before it was unloaded: its id at that time.
    died_as: BTreeMap<CodeId, CodeId>,
}

impl<Origin> Default for HistoryBuilder<Origin> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            events: BTreeMap::new(),
            moves: Vec::new(),
            cleared: Vec::new(),
            died_as: BTreeMap::new(),
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

    /// Reserves space for this many loads of `life`. Memory that is not touched costs nothing.
    pub fn reserve(&mut self, life: LifeId, loads: usize) {
        self.codes.reserve(loads);
        self.events.entry(life).or_default().reserve(loads);
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
    pub fn load(&mut self, life: LifeId, time: u64, code: Code<Origin>) -> CodeId {
        let id = self.push(code);
        self.tell(life, time, Event::Load(id));
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

    /// Whether `life` has any code event.
    #[must_use]
    pub fn has_code(&self, life: LifeId) -> bool {
        self.events.get(&life).is_some_and(|events| !events.is_empty())
    }

    /// Records that something else was put into `range` at `time`, so that no code is there any more. Has no effect
    /// for a life without code events so far.
    pub fn clear(&mut self, life: LifeId, time: u64, range: Range<u64>) {
        if self.has_code(life) {
            let event = Event::Clear(number(self.cleared.len()));
            self.cleared.push(range);
            self.tell(life, time, event);
        }
    }

    fn push(&mut self, code: Code<Origin>) -> CodeId {
        let id = CodeId(number(self.codes.len()));
        self.codes.push(code);
        id
    }

    fn tell(&mut self, life: LifeId, time: u64, event: Event) {
        self.events.entry(life).or_default().push((time, event));
    }

    /// The codes of `life` in the order of their arrival, whatever happened to them later. Use this to look up
    /// addresses that have no times. Moved code appears once for each place.
    #[must_use]
    pub fn into_arrivals(mut self, life: LifeId) -> Vec<Code<Origin>> {
        let mut events = self.events.remove(&life).unwrap_or_default();
        sort(&mut events);
        let mut codes: Vec<Option<Code<Origin>>> = self.codes.into_iter().map(Some).collect();
        let came = |&(_, event): &(u64, Event)| match event {
            Event::Load(id) => Some(id),
            Event::Move(id) => moved(&self.moves, id).map(|(_, new)| new),
            Event::Unload(_) | Event::Clear(_) => None,
        };
        events.iter().filter_map(came).filter_map(|id| codes.get_mut(id.index())?.take()).collect()
    }

    /// Sorts and evaluates all events. `processes` determines which process was forked from which.
    ///
    /// A child that loads its own code gets a copy of what it inherited, as long as all copies together have at most
    /// `copied` pieces. Other children share it with the life they inherited it from, so that neither time nor memory
    /// grows with the square of the events.
    #[must_use]
    pub fn finish(mut self, processes: &Processes, copied: usize) -> History<Origin> {
        self.events.retain(|_, events| !events.is_empty());
        let mut events = core::mem::take(&mut self.events);
        let has_code: BTreeSet<LifeId> = events.keys().copied().collect();
        let mut lives: Vec<LifeId> = has_code.iter().copied().collect();
        lives.sort_by_key(|&life| processes.from(life));
        let came = match lives.iter().any(|&life| processes.parent(life).is_some()) {
            true => self.came(&events),
            false => Vec::new(),
        };
        let inherited = OnceCell::new();
        let mut left = copied;
        let (mut timelines, mut sharing) = (BTreeMap::<LifeId, Timeline>::new(), BTreeMap::new());
        for life in lives {
            let mut told = events.remove(&life).unwrap_or_default();
            sort(&mut told);
            let mut builder = TimelineBuilder::with_capacity(told.len());
            let mut gone = None;
            if let Some((_, forked)) = processes.parent(life)
                && let Some(from) = inherited
                    .get_or_init(|| processes.inherited(|life| has_code.contains(&life)))
                    .get(life.index())
                    .copied()
                    .flatten()
                && let Some(timeline) = timelines.get(&from.life)
            {
                let pieces = timeline.pieces();
                if pieces.len() <= left && !sharing.contains_key(&from.life) {
                    left -= pieces.len();
                    for piece in pieces {
                        if piece.since <= from.asked && from.asked < piece.until {
                            builder.load(forked, piece.range.clone(), piece.code);
                        }
                    }
                } else {
                    gone = Some((from, TimelineBuilder::new(), BTreeMap::new()));
                }
            }
            for (time, event) in told {
                if let (Some((.., taken)), Event::Move(id)) = (&mut gone, event)
                    && let Some((old, _)) = moved(&self.moves, id)
                {
                    taken.entry(old).or_insert(time);
                }
                for step in self.steps(event).into_iter().flatten() {
                    if let (Some((_, gone, _)), Step::Load(range, _) | Step::Clear(range)) =
                        (&mut gone, &step)
                    {
                        gone.load(time, range.clone(), CodeId(0));
                    }
                    match step {
                        Step::Load(range, code) => builder.load(time, range, code),
                        Step::Unload(range, code) => builder.unload(time, range, code),
                        Step::Clear(range) => builder.clear(time, range),
                    }
                }
            }
            timelines.insert(life, builder.finish());
            if let Some((from, gone, taken)) = gone {
                sharing.insert(life, Sharing { from, gone: gone.finish(), taken });
            }
        }
        History { codes: self.codes, moves: self.moves, came, timelines, sharing }
    }

    /// The time at which each code was loaded, indexed by its number.
    fn came(&self, events: &BTreeMap<LifeId, Vec<(u64, Event)>>) -> Vec<u64> {
        let mut came = alloc::vec![0; self.codes.len()];
        for &(time, event) in events.values().flatten() {
            for step in self.steps(event).into_iter().flatten() {
                if let Step::Load(_, code) = step
                    && let Some(place) = came.get_mut(code.index())
                {
                    *place = time;
                }
            }
        }
        came
    }

    /// The effect of an event on a timeline.
    fn steps(&self, event: Event) -> [Option<Step>; 2] {
        let range = |id: CodeId| self.codes.get(id.index()).map(Code::range);
        let load = |id| Some(Step::Load(range(id)?, id));
        let unload = |id| Some(Step::Unload(range(id)?, id));
        match event {
            Event::Load(id) => [load(id), None],
            Event::Unload(id) => [unload(self.died_as.get(&id).copied().unwrap_or(id)), None],
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
fn sort(events: &mut [(u64, Event)]) {
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
    /// For each life, the position where this source's events begin.
    begins: BTreeMap<LifeId, usize>,
    /// The life of the last event.
    last: Option<LifeId>,
    /// For each move of this source, the number of loads added before it.
    loads_before: Vec<usize>,
}

impl<Origin: Clone> SourceBuilder<'_, Origin> {
    /// Adds code that was loaded at `time`; moves refer to it by `index` from then on. Code of size 0 has no effect.
    pub fn load(&mut self, life: LifeId, time: u64, index: u64, code: Code<Origin>) -> LoadId {
        self.indices.push(index);
        let id = self.history.push(code);
        self.tell(life, time, Event::Load(id));
        LoadId(id)
    }

    /// Records that the code that was loaded as `code` was unloaded at `time`, wherever it was at that time.
    pub fn died(&mut self, life: LifeId, time: u64, code: LoadId) {
        self.tell(life, time, Event::Unload(code.0));
    }

    /// Records that a code was moved at `time`. The index and the old address determine [which](crate::meant).
    ///
    /// It must be code of this source that was loaded before, in `life` or, before the fork, in a life that `life`
    /// was forked from, and that was not unloaded.
    pub fn moved(
        &mut self,
        life: LifeId,
        time: u64,
        index: u64,
        old_address: u64,
        new_address: u64,
    ) -> MoveId {
        let id = MoveId(number(self.history.moves.len()));
        self.history.moves.push(Move::Told { index, old_address, new_address });
        self.tell(life, time, Event::Move(id));
        self.loads_before.push(self.indices.len());
        id
    }

    fn tell(&mut self, life: LifeId, time: u64, event: Event) {
        let events = self.history.events.entry(life).or_default();
        if self.last != Some(life) {
            self.begins.entry(life).or_insert(events.len());
            self.last = Some(life);
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
        let mut lives: Vec<(LifeId, usize)> = begins.into_iter().collect();
        lives.sort_by_key(|&(life, _)| processes.from(life));
        let mut moves = Moves::default();
        let mut died_as = Vec::new();
        for &(life, begin) in &lives {
            let told = history.events.get(&life).and_then(|events| events.get(begin..));
            let mut events = told.unwrap_or_default().to_vec();
            sort(&mut events);
            let lineage = processes.lineage(life);
            for (time, event) in events {
                let when = (life, time);
                match event {
                    Event::Load(id) => {
                        let index = id.index().checked_sub(first).and_then(|at| indices.get(at));
                        let code = history.codes.get(id.index()).filter(|code| code.size > 0);
                        if let (Some(&index), Some(code)) = (index, code) {
                            moves.load(when, index, id, code.address);
                        }
                    }
                    Event::Unload(id) => {
                        let last = moves.died(when, &lineage, id);
                        died_as.extend(last.filter(|&last| last != id).map(|last| (id, last)));
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
        for (life, begin) in lives {
            let events = history.events.get_mut(&life).and_then(|events| events.get_mut(begin..));
            for (_, event) in events.unwrap_or_default() {
                if let Event::Load(id) | Event::Unload(id) = event {
                    *id = numbered(*id);
                }
            }
        }
        let own = history.moves.len().saturating_sub(loads_before.len());
        for own in history.moves.iter_mut().skip(own) {
            if let Move::Of { old, new } = own {
                (*old, *new) = (numbered(*old), numbered(*new));
            }
        }
        let died_as = died_as.into_iter().map(|(id, last)| (numbered(id), numbered(last)));
        history.died_as.extend(died_as);
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
                if let Move::Of { new, .. } = moved {
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
        when: (LifeId, u64),
        lineage: &[Inherited],
        moves: &mut Moves,
    ) {
        let Some(&Move::Told { index, old_address, new_address }) = self.moves.get(id.0 as usize)
        else {
            return;
        };
        let mut outcome = Move::OfNone;
        if let Some((code, Place { here: old, .. })) = moves.find(lineage, index, old_address)
            && let Some(moved) = self.codes.get(old.index()).cloned()
        {
            let new = self.push(Code { address: new_address, ..moved });
            moves.put(when, code, Place { address: new_address, here: new });
            outcome = Move::Of { old, new };
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
    came: Vec<u64>,
    timelines: BTreeMap<LifeId, Timeline>,
    /// The lives whose timelines contain only their own code. What they inherited is looked up in the life that they
    /// inherited it from.
    sharing: BTreeMap<LifeId, Sharing>,
}

/// What a life shares with others.
#[derive(Debug)]
struct Sharing {
    from: Inherited,
    /// Where it has put something else since.
    gone: Timeline,
    /// Code that it moved away, and when.
    taken: BTreeMap<CodeId, u64>,
}

impl<Origin> Default for History<Origin> {
    fn default() -> Self {
        let (codes, moves, came) = (Vec::new(), Vec::new(), Vec::new());
        Self { codes, moves, came, timelines: BTreeMap::new(), sharing: BTreeMap::new() }
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
        (self.came.get(id.index()).copied().unwrap_or(0), id)
    }

    /// The timeline of each life that has code of its own.
    pub fn timelines(&self) -> impl Iterator<Item = (LifeId, &Timeline)> {
        self.timelines.iter().map(|(&life, timeline)| (life, timeline))
    }

    /// The timeline of `life`, if it has code of its own.
    #[must_use]
    pub fn timeline(&self, life: LifeId) -> Option<&Timeline> {
        self.timelines.get(&life)
    }

    /// The code that `life` had at `address` at `time`, its own or inherited.
    ///
    /// This follows the forks for each query. To query many addresses, cache the results of [`Processes::inherited`],
    /// [`Timeline::around`] and [`Self::shared`].
    #[must_use]
    pub fn at(
        &self,
        processes: &Processes,
        life: LifeId,
        address: u64,
        time: u64,
    ) -> Option<CodeId> {
        let (mut life, mut time) = (life, time);
        let mut heirs = Vec::new();
        loop {
            if let Some(timeline) = self.timelines.get(&life) {
                if let Some(piece) = timeline.at(address, time) {
                    let is_taken = |&(heir, time): &(LifeId, u64)| {
                        self.taken(heir, piece.code).is_some_and(|taken| taken <= time)
                    };
                    return (!heirs.iter().any(is_taken)).then_some(piece.code);
                }
                heirs.push((life, time));
                let (from, ..) = self.shared(processes, life, address, time)?;
                let from = from?;
                (life, time) = (from.life, from.asked);
            } else {
                let (parent, forked) = processes.parent(life)?;
                if time < forked {
                    return None;
                }
                (life, time) = (parent, forked.saturating_sub(1));
            }
        }
    }

    /// Whether `life` has more code than its timeline contains: code that it inherited, and shares with the life it
    /// inherited it from.
    #[must_use]
    pub fn is_sharing(&self, life: LifeId) -> bool {
        self.sharing.contains_key(&life)
    }

    /// The life from which `life` has what is at `address` at `time`, if that is not its own, and the addresses and
    /// times for which this is valid. Call this only where its own timeline has nothing.
    #[must_use]
    pub fn shared(
        &self,
        processes: &Processes,
        life: LifeId,
        address: u64,
        time: u64,
    ) -> Option<(Option<Inherited>, Range<u64>, Range<u64>)> {
        let Sharing { from, gone, .. } = self.sharing.get(&life)?;
        let began = processes.from(life);
        if time < began {
            return Some((None, 0..u64::MAX, 0..began));
        }
        let Around { who, addresses, times } = gone.around(address, time);
        let from = (!matches!(who, Who::Here(_))).then_some(*from);
        Some((from, addresses, ranges::intersection(&times, &(began..u64::MAX))))
    }

    /// When `life` moved `code` away, which it shares with the life it inherited it from. [`Self::shared`] covers
    /// where it put something else, but not this.
    #[must_use]
    pub fn taken(&self, life: LifeId, code: CodeId) -> Option<u64> {
        self.sharing.get(&life)?.taken.get(&code).copied()
    }

    /// Whether any life that `life` shares code with, at most `generations` away, had code within `range`.
    #[must_use]
    pub fn is_shared_within(&self, life: LifeId, range: &Range<u64>, generations: usize) -> bool {
        let from = |life| self.sharing.get(&life).map(|sharing| sharing.from.life);
        let mut others = core::iter::successors(from(life), |&life| from(life)).take(generations);
        others.any(|life| {
            self.timelines.get(&life).is_some_and(|code| !code.pieces_over(range).is_empty())
        })
    }

    /// Frees the timelines. Queries by address and time are no longer possible; queries by id still are.
    pub fn forget_timelines(&mut self) {
        self.timelines = BTreeMap::new();
        self.sharing = BTreeMap::new();
    }
}
