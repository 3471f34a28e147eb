//! All code that the sources tell of, and the timeline of every process.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use code_timeline::{CodeId, LifeId, Timeline, TimelineBuilder, ranges};
use jitdump::{CodeEvent, CodeLoad, CodeMove, CodePlace, DumpFile, Outcome, Quirks};

use super::address_space::AddressSpaces;
use super::survey::Survey;
use super::turns::ahead;
use crate::{Error, Result};

/// Where a piece of code is known from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A LOAD of a jitdump: its place among the loads.
    Dump(u32),
    /// A line of a perf map: the name it gives.
    Map(&'a [u8]),
}

/// One piece of code at one place: code that moves is another.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// Address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Where it is known from.
    pub origin: Origin<'a>,
}

impl Code<'_> {
    /// The addresses.
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

/// Code by number, timelines by life.
#[derive(Debug, Default)]
pub struct CodeBook<'a> {
    codes: Vec<Code<'a>>,
    loads: Vec<Load>,
    dumps: Vec<OpenDump>,
    events: BTreeMap<LifeId, Vec<(u64, Event)>>,
    timelines: BTreeMap<LifeId, Timeline>,
}

/// A jitdump that codes are read from again.
#[derive(Debug)]
pub struct OpenDump {
    /// Where it lies.
    pub path: PathBuf,
    /// Its file.
    pub file: DumpFile<File>,
    /// What its writer does otherwise than the format says.
    pub quirks: Quirks,
}

/// Where a LOAD is told of: to be read again when its image is written, as all that it says, its
/// name among it, would take much room.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Which dump.
    dump: u32,
    place: CodePlace,
}

/// Reads again what the dumps say of codes, best in the order of the file.
#[derive(Debug)]
pub struct CodeReader<'a> {
    loads: &'a [Load],
    dumps: &'a [OpenDump],
    files: Vec<DumpFile<&'a File>>,
}

impl CodeReader<'_> {
    /// What the dump says of code that is known from one; `None` for other code, and where the dump
    /// does not say it any more.
    pub fn load(&mut self, code: &Code<'_>) -> Result<Option<CodeLoad<'_>>> {
        let Origin::Dump(load) = code.origin else { return Ok(None) };
        let Some(&Load { dump, place }) = self.loads.get(load as usize) else { return Ok(None) };
        let dump = dump as usize;
        let Some((file, dump)) = self.files.get_mut(dump).zip(self.dumps.get(dump)) else {
            return Ok(None);
        };
        let load = file.code_at(&place, &dump.quirks).map_err(Error::file(&dump.path))?;
        Ok(load.filter(|load| load.size == code.size))
    }
}

/// What a dump tells, as far as the book wants it.
enum Told {
    Load(ToldLoad),
    Move(CodeMove),
    Damage(jitdump::Error),
}

/// What a dump tells first of code: see [`CodeLoad`].
struct ToldLoad {
    timestamp: u64,
    pid: u32,
    address: u64,
    size: u64,
    index: u64,
    died: Option<u64>,
    place: CodePlace,
}

impl Told {
    fn of(event: std::result::Result<CodeEvent<'_>, jitdump::Error>) -> Option<Self> {
        match event {
            Ok(CodeEvent::Load(load)) if load.size > 0 => Some(Self::Load(ToldLoad {
                timestamp: load.timestamp,
                pid: load.pid,
                address: load.address,
                size: load.size,
                index: load.index,
                died: load.died(),
                place: load.place(),
            })),
            Ok(CodeEvent::Move(to)) => Some(Self::Move(to)),
            Ok(_) => None,
            Err(error) => Some(Self::Damage(error)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Load(CodeId),
    Unload(CodeId),
    /// A file was mapped: its place among the mappings.
    Mapped(usize),
}

/// Code that came only after something else had run in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ahead {
    /// In whose timeline the code stands.
    pub owner: LifeId,
    /// Who ran something else.
    pub life: LifeId,
    /// The code.
    pub code: CodeId,
    /// In another life than the owner's: until when it has what the owner had.
    pub asked: u64,
}

/// A dump rarely takes fewer bytes for a code with lines.
const SMALL_CODE: u64 = 300;
/// More codes than this are not expected: a file may claim any size.
const MANY: usize = 1 << 20;

/// A line of a perf map that claims more bytes than this is not believed. (A jitdump holds the
/// bytes.)
const LARGEST: u64 = 1 << 28;

impl<'a> CodeBook<'a> {
    /// The code with this number.
    pub fn code(&self, id: CodeId) -> &Code<'a> {
        &self.codes[id.index()]
    }

    /// Reads again what the sources say of codes: each reader for itself.
    pub fn reader(&self) -> CodeReader<'_> {
        let files = self.dumps.iter().map(|dump| dump.file.another());
        CodeReader { files: files.collect(), loads: &self.loads, dumps: &self.dumps }
    }

    /// How many pieces of code there are.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// The timeline of each life that has code of its own.
    pub fn timelines(&self) -> impl Iterator<Item = (LifeId, &Timeline)> {
        self.timelines.iter().map(|(&life, timeline)| (life, timeline))
    }

    /// Makes room for what a dump of `size` bytes may well tell of `life`, so that the tables need
    /// not grow step by step: memory that is not touched costs nothing.
    pub fn expect(&mut self, life: LifeId, size: u64) {
        let codes = usize::try_from(size / SMALL_CODE).unwrap_or(MANY).min(MANY);
        self.codes.reserve(codes);
        self.loads.reserve(codes);
        self.events.entry(life).or_default().reserve(codes);
    }

    /// Takes the code events of a dump; damage goes to `damaged`. `life_of` says whose memory a
    /// record's pid means, `parent_of` whose it began as. Returns how many pieces of code it told of,
    /// and how it ended.
    pub fn add_dump(
        &mut self,
        mut dump: OpenDump,
        mut damaged: impl FnMut(jitdump::Error),
        time_of: impl Fn(u64) -> u64,
        life_of: impl Fn(u32) -> LifeId,
        parent_of: impl Fn(LifeId) -> Option<LifeId>,
    ) -> (usize, io::Result<Option<Outcome>>) {
        let before = self.codes.len();
        let number = u32::try_from(self.dumps.len()).unwrap_or(u32::MAX);
        // Where each code is now, by the number that a MOVE names it by. A forked child counts on
        // by itself. Few dumps have a MOVE, so this is filled when the first one comes.
        let mut told: Vec<(LifeId, u64, CodeId)> = Vec::new();
        let mut places: HashMap<(LifeId, u64), CodeId> = HashMap::new();
        let quirks = dump.quirks;
        let file = &mut dump.file;
        let read = |give: &mut dyn FnMut(Told)| {
            file.for_each_code(quirks, |event| {
                Told::of(event).map(&mut *give);
                ControlFlow::Continue(())
            })
        };
        let outcome = ahead(read, |event| match event {
            Told::Load(load) => {
                let life = life_of(load.pid);
                let origin = Origin::Dump(u32::try_from(self.loads.len()).unwrap_or(u32::MAX));
                let id = self.push(Code { address: load.address, size: load.size, origin });
                told.push((life, load.index, id));
                self.tell(life, time_of(load.timestamp), Event::Load(id));
                if let Some(died) = load.died {
                    self.tell(life, time_of(died), Event::Unload(id));
                }
                self.loads.push(Load { dump: number, place: load.place });
            }
            Told::Move(to) => {
                places.extend(told.drain(..).map(|(life, index, id)| ((life, index), id)));
                // A MOVE of code that was never told of says nothing that could be shown.
                let life = life_of(to.pid);
                let inherited = || places.get(&(parent_of(life)?, to.index));
                let known = places.get(&(life, to.index)).or_else(inherited);
                let Some(&old) = known else { return };
                let new = self.push(Code { address: to.new_address, ..*self.code(old) });
                places.insert((life, to.index), new);
                self.tell(life, time_of(to.timestamp), Event::Unload(old));
                self.tell(life, time_of(to.timestamp), Event::Load(new));
            }
            Told::Damage(error) => damaged(error),
        });
        self.dumps.push(dump);
        // Room alone is no code.
        self.events.retain(|_, events| !events.is_empty());
        (self.codes.len() - before, outcome)
    }

    /// Takes the lines of a perf map, which have no times: they hold from the beginning, a later
    /// line over an earlier one. `files` are addresses that belong to mapped files, whose own
    /// symbols say more. Returns how many lines were of use.
    pub fn add_map(
        &mut self,
        entries: impl Iterator<Item = perf_map::Entry<'a>>,
        life: LifeId,
        files: &[Range<u64>],
    ) -> usize {
        let before = self.codes.len();
        for entry in entries {
            let range = entry.address..entry.address.saturating_add(entry.size);
            let size = range.end - range.start;
            if range.is_empty() || size > LARGEST || !ranges::overlapping(files, &range).is_empty()
            {
                continue;
            }
            let code = Code { address: entry.address, size, origin: Origin::Map(entry.name) };
            let id = self.push(code);
            self.tell(life, 0, Event::Load(id));
        }
        self.codes.len() - before
    }

    fn push(&mut self, code: Code<'a>) -> CodeId {
        let id = CodeId(u32::try_from(self.codes.len()).unwrap_or(u32::MAX));
        self.codes.push(code);
        id
    }

    fn tell(&mut self, life: LifeId, time: u64, event: Event) {
        self.events.entry(life).or_default().push((time, event));
    }

    /// Puts the events of every life in order. Call once, when all sources are in.
    pub fn finish(&mut self, survey: &Survey, spaces: &AddressSpaces) {
        let mut events = std::mem::take(&mut self.events);
        // A file that is mapped over code ends it; one that was there before, and is only told of
        // once more, does not.
        for (number, map) in survey.maps.iter().enumerate() {
            if let Some(told) = events.get_mut(&map.life)
                && spaces.brings_new_file(survey, map)
            {
                told.push((map.time, Event::Mapped(number)));
            }
        }
        let mut lives: Vec<LifeId> = events.keys().copied().collect();
        lives.sort_by_key(|&life| survey.processes.from(life));
        for life in lives {
            let mut told = events.remove(&life).unwrap_or_default();
            let mut builder = TimelineBuilder::with_capacity(told.len());
            // A child that makes code of its own has its parent's as well, as it was at the fork.
            if let Some((parent, forked)) = survey.processes.parent(life)
                && let Some(timeline) = self.timelines.get(&parent)
            {
                let copied = timeline.pieces().iter();
                for piece in copied.filter(|piece| piece.since <= forked && forked < piece.until) {
                    builder.load(forked, piece.range.clone(), piece.code);
                }
            }
            // Stable: events of one time keep the order in which they were told, but that code
            // comes after the mapping it lies in.
            told.sort_by_key(|&(time, event)| (time, !matches!(event, Event::Mapped(_))));
            for (time, event) in told {
                match event {
                    Event::Load(id) => builder.load(time, self.code(id).range(), id),
                    Event::Unload(id) => builder.unload(time, self.code(id).range(), id),
                    Event::Mapped(number) => builder.clear(time, survey.maps[number].range.clone()),
                }
            }
            self.timelines.insert(life, builder.finish());
        }
    }

    /// The timeline of `life`, if it has code of its own.
    pub fn timeline(&self, life: LifeId) -> Option<&Timeline> {
        self.timelines.get(&life)
    }

    /// Lets go of the timelines: who was where when is known no more, who says what still is.
    pub fn forget_timelines(&mut self) {
        self.timelines = BTreeMap::new();
    }
}
