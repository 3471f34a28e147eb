//! All code that the sources describe, and the timeline of every address space.

use std::collections::HashMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use code_timeline::{AddressSpaceId, CodeId, History, HistoryBuilder, Processes, ranges};
use jitdump::{CodeEvent, CodeLoad, CodeMove, CodePlace, DumpFile, Outcome, Quirks};

use super::address_space::AddressSpaces;
use super::limits::COPIED;
use super::parallel::pipeline;
use super::recording_index::RecordingIndex;
use crate::files::{SourceFile, content};
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
pub type Code<'a> = code_timeline::Code<Origin<'a>>;

/// The codes by number, and which code was where at which time.
#[derive(Debug, Default)]
pub struct CodeTable<'a> {
    /// What the sources said so far; empty once the history is made of it.
    builder: HistoryBuilder<Origin<'a>>,
    /// The codes by number, and the timeline of each process.
    pub(crate) history: History<Origin<'a>>,
    loads: Vec<Load>,
    dumps: Vec<OpenDump>,
    /// How many bytes of dumps and maps tell of code.
    bytes: u64,
}

/// A jitdump that codes are read from again.
#[derive(Debug)]
pub struct OpenDump {
    /// Where it lies.
    pub path: PathBuf,
    /// Its file.
    pub file: DumpFile<SourceFile>,
    /// What its writer does otherwise than the format says.
    pub quirks: Quirks,
}

/// Where a LOAD is told of: to be read again when its image is written, as all that it says, its
/// name among it, would take much room.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Which dump.
    dump: u32,
    /// How many bytes of it tell of the code.
    weight: u32,
    place: CodePlace,
}

/// Reads again what the dumps say of codes, best in the order of the file.
#[derive(Debug)]
pub struct CodeReader<'a> {
    loads: &'a [Load],
    dumps: &'a [OpenDump],
    /// By dump; those that were read from so far.
    files: HashMap<u32, DumpFile<&'a SourceFile>>,
}

impl CodeReader<'_> {
    /// What the dump says of code that is known from one; `None` for other code, and where the dump
    /// does not say it any more.
    pub fn load(&mut self, code: &Code<'_>) -> Result<Option<CodeLoad<'_>>> {
        let Origin::Dump(load) = code.origin else { return Ok(None) };
        let Some(&Load { dump, place, .. }) = self.loads.get(load as usize) else {
            return Ok(None);
        };
        let Some(open) = self.dumps.get(dump as usize) else { return Ok(None) };
        let file = self.files.entry(dump).or_insert_with(|| open.file.another());
        let dump = open;
        let load = file.code_at(&place, &dump.quirks).map_err(Error::file(&dump.path))?;
        Ok(load.filter(|load| load.size == code.size))
    }
}

/// An event of a dump, as far as the table needs it.
enum DumpEvent {
    Load(NewCode),
    Move(CodeMove),
    Damage(jitdump::Error),
}

/// What is kept of a [`CodeLoad`].
struct NewCode {
    timestamp: u64,
    pid: u32,
    address: u64,
    size: u64,
    index: u64,
    died: Option<u64>,
    weight: u32,
    place: CodePlace,
}

impl DumpEvent {
    fn from_event(event: std::result::Result<CodeEvent<'_>, jitdump::Error>) -> Option<Self> {
        match event {
            Ok(CodeEvent::Load(load)) if load.size > 0 => Some(Self::Load(NewCode {
                timestamp: load.timestamp,
                pid: load.pid,
                address: load.address,
                size: load.size,
                index: load.index,
                died: load.died(),
                weight: u32::try_from(load.weight()).unwrap_or(u32::MAX),
                place: load.place(),
            })),
            Ok(CodeEvent::Move(to)) => Some(Self::Move(to)),
            Ok(_) => None,
            Err(error) => Some(Self::Damage(error)),
        }
    }
}

/// Code that came only after something else had run in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateCode {
    /// In whose timeline the code stands.
    pub owner: AddressSpaceId,
    /// Who ran something else.
    pub space: AddressSpaceId,
    /// The code.
    pub code: CodeId,
    /// In another life than the owner's: until when it has what the owner had.
    pub as_of: u64,
}

/// A dump rarely takes fewer bytes for a code with lines.
const SMALL_CODE: u64 = 300;
/// More codes than this are not expected: a file may claim any size.
const MANY: usize = 1 << 20;

impl<'a> CodeTable<'a> {
    /// Reads again what the sources say of codes: each reader for itself.
    pub fn reader(&self) -> CodeReader<'_> {
        CodeReader { files: HashMap::new(), loads: &self.loads, dumps: &self.dumps }
    }

    /// How many bytes of dumps and maps tell of code.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of them tell of this code, and a number for what tells of it, which code that was moved
    /// has in common.
    pub fn weight(&self, id: CodeId) -> (u64, u32) {
        match self.history.code(id).origin {
            Origin::Map(name) => (name.len() as u64, u32::MAX - id.0),
            Origin::Dump(load) => {
                let load_at = self.loads.get(load as usize);
                (load_at.map_or(0, |load| load.weight.into()), load)
            }
        }
    }

    /// Makes room for what a dump of `size` bytes may well tell of `space`, so that the tables need
    /// not grow step by step: memory that is not touched costs nothing.
    pub fn reserve(&mut self, space: AddressSpaceId, size: u64) {
        let codes = usize::try_from(size / SMALL_CODE).unwrap_or(MANY).min(MANY);
        self.builder.reserve(space, codes);
        self.loads.reserve(codes);
    }

    /// Takes the code events of a dump; damage goes to `damaged`. `space_of` says whose memory a
    /// record's pid means. Returns how many pieces of code it told of, and how it ended.
    pub fn add_dump(
        &mut self,
        mut dump: OpenDump,
        mut damaged: impl FnMut(jitdump::Error),
        time_of: impl Fn(u64) -> u64,
        space_of: impl Fn(u32) -> AddressSpaceId,
        processes: &Processes,
    ) -> (usize, io::Result<Option<Outcome>>) {
        let before = self.builder.len();
        let number = u32::try_from(self.dumps.len()).unwrap_or(u32::MAX);
        let mut source = self.builder.source();
        let quirks = dump.quirks;
        let file = &mut dump.file;
        let read = |give: &mut dyn FnMut(DumpEvent)| {
            file.for_each_code(quirks, |event| {
                DumpEvent::from_event(event).map(&mut *give);
                ControlFlow::Continue(())
            })
        };
        let outcome = pipeline(read, |event| match event {
            DumpEvent::Load(load) => {
                let (space, time) = (space_of(load.pid), time_of(load.timestamp));
                let origin = Origin::Dump(u32::try_from(self.loads.len()).unwrap_or(u32::MAX));
                let code = Code { address: load.address, size: load.size, origin };
                let id = source.load(space, time, load.index, code);
                if let Some(died) = load.died {
                    source.unload(space, time_of(died), id);
                }
                self.bytes += u64::from(load.weight);
                self.loads.push(Load { dump: number, weight: load.weight, place: load.place });
            }
            DumpEvent::Move(to) => {
                let (space, time) = (space_of(to.pid), time_of(to.timestamp));
                source.moved(space, time, to.index, to.old_address, to.new_address);
            }
            DumpEvent::Damage(error) => damaged(error),
        });
        source.finish(processes);
        self.dumps.push(dump);
        (self.builder.len() - before, outcome)
    }

    /// Takes the lines of a perf map, which have no times: they hold from the beginning, a later
    /// line over an earlier one. `files` are addresses that belong to mapped files, whose own
    /// symbols say more. Returns how many lines were of use.
    pub fn add_map(
        &mut self,
        entries: impl Iterator<Item = perf_map::Entry<'a>>,
        space: AddressSpaceId,
        files: &[Range<u64>],
    ) -> usize {
        let before = self.builder.len();
        for entry in entries {
            let range = entry.address..entry.address.saturating_add(entry.size);
            let size = range.end - range.start;
            if range.is_empty()
                || size > content::LARGEST_CODE
                || !ranges::overlapping(files, &range).is_empty()
            {
                continue;
            }
            self.bytes += entry.name.len() as u64;
            let code = Code { address: entry.address, size, origin: Origin::Map(entry.name) };
            self.builder.load(space, 0, code);
        }
        self.builder.len() - before
    }

    /// Puts the events of every life in order. Call once, when all sources are in.
    pub fn finish(&mut self, index: &RecordingIndex, spaces: &AddressSpaces) {
        let mut builder = std::mem::take(&mut self.builder);
        // A file that is mapped over code ends it; one that was there before, and is only told of
        // once more, does not.
        for map in &index.maps {
            if builder.has_code(map.space) && spaces.brings_new_file(index, map) {
                builder.clear(map.space, map.time, map.range.clone());
            }
        }
        self.history = builder.finish(&index.processes, COPIED);
    }
}
