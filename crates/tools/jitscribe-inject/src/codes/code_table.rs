//! All code that the sources describe, and the timeline of every address space.

use std::collections::HashMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use code_timeline::{AddressSpaceId, CodeId, History, HistoryBuilder, Processes};
use jit_code::Kind;
use rustc_hash::FxBuildHasher;

use jitdump::{CodeEvent, CodeLoad, CodeMove, CodePlace, DumpFile, Outcome, Quirks};

use super::function_hash::function_hash;
use super::named_by_file::NamedByFile;
use super::v8_log::{InfoId, LoggedCodes, Matching, PositionsReader, with_url};
use crate::files::{SourceFile, content};
use crate::limits::COPIED;
use crate::parallel::pipeline;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;
use crate::{Error, Result};

/// The source of a piece of code.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A LOAD of a jitdump: its index in the list of loads.
    Dump(u32),
    /// A line of a perf map: its index in the list of names.
    Map(u32),
    /// No source: its index in the list of inferred names.
    Inferred(u32),
}

/// One piece of code at one place. Moved code is a separate piece.
pub type Code = code_timeline::Code<Origin>;

/// The codes by number, and which code was where at which time.
#[derive(Debug, Default)]
pub struct CodeTable<'a> {
    /// The events of the sources so far; empty once the history was computed.
    builder: HistoryBuilder<Origin>,
    /// The codes by number, and the timeline of each process.
    pub(crate) history: History<Origin>,
    loads: Vec<Load>,
    dumps: Vec<OpenDump>,
    /// By address space.
    last_of_dumps: HashMap<AddressSpaceId, LastOfDump>,
    /// By load: the code in the code logs of V8.
    in_v8_logs: HashMap<u32, InfoId, FxBuildHasher>,
    /// The names in perf maps.
    map_names: Vec<&'a [u8]>,
    /// The names that were inferred.
    inferred: Vec<Vec<u8>>,
    /// The bytes of code whose source has none, where they were read from the process.
    pub(crate) captured_bytes: HashMap<CodeId, Vec<u8>>,
    /// Number of bytes in dumps and maps that describe code.
    bytes: u64,
}

/// A jitdump from which codes are read again later.
#[derive(Debug)]
pub struct OpenDump {
    /// Its path.
    pub path: PathBuf,
    /// Its file.
    pub file: DumpFile<SourceFile>,
    /// How its writer deviates from the format.
    pub quirks: Quirks,
    /// The code logs of V8 for the same code.
    pub v8_logs: LoggedCodes,
}

/// The place of a LOAD, which is read again when its image is written: keeping its content, such as the name, would
/// take much space.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// The index of the dump.
    dump: u32,
    /// Number of bytes in the dump that describe the code.
    weight: u32,
    /// What its function is recognized by.
    function: u32,
    kind: Kind,
    has_bytes: bool,
    place: CodePlace,
}

/// The last code that a dump has in an address space.
#[derive(Clone, Copy, Debug)]
struct LastOfDump {
    address: u64,
    size: u64,
    function: u32,
    time: u64,
}

/// Reads codes from the dumps again. Reading in the order of the file is fastest.
#[derive(Debug)]
pub struct CodeReader<'a> {
    /// By dump, for the dumps that were read from so far.
    files: HashMap<u32, DumpFile<&'a SourceFile>>,
    table: &'a CodeTable<'a>,
    positions: PositionsReader,
    /// The name of the last code, if it is not that in the dump.
    name: Vec<u8>,
}

/// Number of codes of a dump, and how its reading ended.
pub type AddedCodes = (usize, io::Result<Option<Outcome>>);

impl CodeReader<'_> {
    /// Reads the record of a code in a dump, and what V8's code log has for it. `None` for other code, and if the dump does not contain the record any
    /// more.
    pub fn load(&mut self, code: &Code) -> Result<Option<CodeLoad<'_>>> {
        let Origin::Dump(load) = code.origin else { return Ok(None) };
        let table = self.table;
        let Some(&Load { dump, place, .. }) = table.loads.get(load as usize) else {
            return Ok(None);
        };
        let Some(open) = table.dumps.get(dump as usize) else { return Ok(None) };
        let file = self.files.entry(dump).or_insert_with(|| open.file.another());
        let dump = open;
        let number = load;
        let load = file.code_at(&place, &dump.quirks).map_err(Error::file(&dump.path))?;
        let Some(mut load) = load.filter(|load| load.size == code.size) else { return Ok(None) };
        let logged = table.in_v8_log(number);
        if let Some(url) = logged.and_then(|(logs, id)| logs.url_of(id))
            && let Some(name) = with_url(load.name, url, &mut self.name)
        {
            load.name = name;
        }
        let positions = logged.and_then(|(logs, id)| self.positions.read(logs, id));
        Ok(Some(positions.map_or(load, |positions| load.with_source_positions(positions))))
    }
}

/// An event of a dump, as far as the table needs it.
enum DumpEvent {
    Load(NewCode),
    Move(CodeMove),
    Damage(jitdump::Error),
}

/// The stored part of a [`CodeLoad`].
struct NewCode {
    timestamp: u64,
    pid: u32,
    address: u64,
    size: u64,
    index: u64,
    died: Option<u64>,
    seen: Option<u64>,
    weight: u32,
    function: u32,
    kind: Kind,
    has_bytes: bool,
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
                seen: load.seen(),
                weight: u32::try_from(load.weight()).unwrap_or(u32::MAX),
                function: function_hash(load.name),
                kind: load.kind(),
                has_bytes: !load.is_without_bytes(),
                place: load.place(),
            })),
            Ok(CodeEvent::Move(to)) => Some(Self::Move(to)),
            Ok(_) => None,
            Err(error) => Some(Self::Damage(error)),
        }
    }
}

/// A code with an inferred name.
#[derive(Debug)]
pub struct InferredCode {
    /// Its addresses.
    pub range: Range<u64>,
    /// When it is there.
    pub times: Range<u64>,
    /// Its name.
    pub name: Vec<u8>,
}

/// Code that was loaded after something else had run at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateCode {
    /// The address space whose timeline has the code.
    pub owner: AddressSpaceId,
    /// The address space that ran something else.
    pub space: AddressSpaceId,
    /// The code.
    pub code: CodeId,
    /// In another address space than the owner's: the last time of the owner of which it has a copy.
    pub as_of: u64,
}

/// A dump rarely takes fewer bytes for a code with lines.
const SMALL_CODE: u64 = 300;
/// More codes than this are not expected: a file may claim any size.
const MANY: usize = 1 << 20;

impl<'a> CodeTable<'a> {
    /// A reader for the records of codes. Readers are independent of each other.
    pub fn reader(&self) -> CodeReader<'_> {
        CodeReader {
            files: HashMap::new(),
            table: self,
            positions: PositionsReader::default(),
            name: Vec::new(),
        }
    }

    /// Number of loads that a code log of V8 has.
    pub fn logged(&self) -> usize {
        self.in_v8_logs.len()
    }

    /// The code in V8's logs that a load is.
    fn in_v8_log(&self, load: u32) -> Option<(&LoggedCodes, InfoId)> {
        let id = *self.in_v8_logs.get(&load)?;
        let dump = self.dumps.get(self.loads.get(load as usize)?.dump as usize)?;
        Some((&dump.v8_logs, id))
    }

    /// The source of the script with this URL as V8 compiled it, if a log has it.
    pub fn script_text(&self, url: &[u8]) -> Option<String> {
        let url = std::str::from_utf8(url).ok()?;
        self.dumps.iter().find_map(|dump| dump.v8_logs.text_at(url))
    }

    /// The codes in V8's logs that these codes are.
    pub fn in_v8_logs(
        &self,
        codes: impl Iterator<Item = CodeId>,
    ) -> impl Iterator<Item = (&LoggedCodes, InfoId)> {
        codes.filter_map(|id| match self.history.code(id).origin {
            Origin::Dump(load) => self.in_v8_log(load),
            Origin::Map(_) | Origin::Inferred(_) => None,
        })
    }

    /// Number of bytes in dumps and maps that describe code.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of them describe this code, and the number of the description, which is the same for moved code.
    pub fn weight(&self, id: CodeId) -> (u64, u32) {
        match self.history.code(id).origin {
            Origin::Map(_) | Origin::Inferred(_) => {
                (self.name_without_dump(id).map_or(0, |name| name.len() as u64), u32::MAX - id.0)
            }
            Origin::Dump(load) => {
                let load_at = self.loads.get(load as usize);
                (load_at.map_or(0, |load| load.weight.into()), load)
            }
        }
    }

    /// The name of a code of a perf map, or an inferred name; `None` for a code of a dump, which must be read for it.
    pub fn name_without_dump(&self, id: CodeId) -> Option<&[u8]> {
        match self.history.code(id).origin {
            Origin::Map(name) => self.map_names.get(name as usize).copied(),
            Origin::Inferred(name) => self.inferred.get(name as usize).map(Vec::as_slice),
            Origin::Dump(_) => None,
        }
    }

    /// The name of a code. A code of a dump is read for it.
    pub fn name(&self, id: CodeId) -> Result<Vec<u8>> {
        if let Some(name) = self.name_without_dump(id) {
            return Ok(name.to_vec());
        }
        let loaded = self.reader().load(self.history.code(id))?.map(|load| load.name.to_vec());
        Ok(loaded.unwrap_or_default())
    }

    /// Adds codes whose names were inferred, where and when there is no other. Returns their number.
    pub fn add_inferred(&mut self, space: AddressSpaceId, codes: Vec<InferredCode>) -> usize {
        let mut fills = Vec::with_capacity(codes.len());
        for InferredCode { range, times, name } in codes {
            self.bytes += name.len() as u64;
            let origin = Origin::Inferred(u32::try_from(self.inferred.len()).unwrap_or(u32::MAX));
            self.inferred.push(name);
            let size = range.end.saturating_sub(range.start);
            fills.push((Code { address: range.start, size, origin }, times));
        }
        self.history.fill(space, fills)
    }

    /// What the function of a load is recognized by.
    pub fn function_of_load(&self, load: u32) -> u32 {
        self.loads.get(load as usize).map_or(0, |load| load.function)
    }

    /// The role of a code in its runtime.
    pub fn kind(&self, id: CodeId) -> Kind {
        match self.history.code(id).origin {
            Origin::Map(_) | Origin::Inferred(_) => Kind::Function,
            Origin::Dump(load) => {
                self.loads.get(load as usize).map_or(Kind::Function, |load| load.kind)
            }
        }
    }

    /// Whether the source of a code has its bytes.
    pub fn has_bytes(&self, id: CodeId) -> bool {
        match self.history.code(id).origin {
            Origin::Map(_) | Origin::Inferred(_) => false,
            Origin::Dump(load) => self.loads.get(load as usize).is_some_and(|load| load.has_bytes),
        }
    }

    /// Reserves space for the codes of `space` that a dump of `size` bytes may contain, so that the tables need not
    /// grow step by step. Memory that is not touched costs nothing.
    pub fn reserve(&mut self, space: AddressSpaceId, size: u64) {
        let codes = usize::try_from(size / SMALL_CODE).unwrap_or(MANY).min(MANY);
        self.builder.reserve(space, codes);
        self.loads.reserve(codes);
    }

    /// Adds the code events of a dump, without code that is named by the file it is in; damage is passed to `damaged`. `space_of` maps the pid of a record to an address
    /// space. Returns the number of pieces of code, and how the dump ended.
    pub fn add_dump(
        &mut self,
        mut dump: OpenDump,
        mut damaged: impl FnMut(jitdump::Error),
        time_of: impl Fn(u64) -> u64,
        space_of: impl Fn(u32) -> AddressSpaceId,
        named_by_file: &mut NamedByFile<'_>,
        processes: &Processes,
    ) -> AddedCodes {
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
        let mut matching = Matching::new(&dump.v8_logs);
        let outcome = pipeline(read, |event| match event {
            DumpEvent::Load(load) => {
                let (space, mut time) = (space_of(load.pid), time_of(load.timestamp));
                if let Some(seen) = load.seen.map(&time_of) {
                    // Of the memory that was there before, nothing is the code's.
                    let since = named_by_file.unchanged_since(space, load.address, seen);
                    time = time.max(since.min(seen));
                }
                if named_by_file.has(space, load.address, time) {
                    return;
                }
                let load_number = u32::try_from(self.loads.len()).unwrap_or(u32::MAX);
                let origin = Origin::Dump(load_number);
                matching.load(load_number, load.address, load.size, load.timestamp);
                let code = Code { address: load.address, size: load.size, origin };
                let id = source.load(space, time, load.index, code);
                if let Some(died) = load.died {
                    source.unload(space, time_of(died), id);
                }
                self.bytes += u64::from(load.weight);
                let NewCode { weight, function, kind, has_bytes, place, .. } = load;
                let NewCode { address, size, .. } = load;
                self.last_of_dumps.insert(space, LastOfDump { address, size, function, time });
                self.loads.push(Load { dump: number, weight, function, kind, has_bytes, place });
            }
            DumpEvent::Move(to) => {
                let (space, time) = (space_of(to.pid), time_of(to.timestamp));
                source.moved(space, time, to.index, to.old_address, to.new_address);
            }
            DumpEvent::Damage(error) => damaged(error),
        });
        source.finish(processes);
        let matched = matching.finish();
        dump.v8_logs.prepare(matched.iter().map(|(_, id)| *id));
        for (number, id) in matched {
            let weight = u32::try_from(dump.v8_logs.weight(id)).unwrap_or(u32::MAX);
            if let Some(load) = self.loads.get_mut(number as usize) {
                load.weight = load.weight.saturating_add(weight);
            }
            self.bytes += u64::from(weight);
            self.in_v8_logs.insert(number, id);
        }
        self.dumps.push(dump);
        (self.builder.len() - before, outcome)
    }

    /// How many lines of a perf map a dump of the same writer has too, and the time of the last of them. `None` if there is no such dump.
    ///
    /// V8 writes both. If a signal ends it, the last 2 MB of the dump are missing, but no line of the map; what the dump has, it has with times.
    pub fn lines_in_dump(
        &self,
        entries: impl Iterator<Item = perf_map::Entry<'a>>,
        space: AddressSpaceId,
    ) -> Option<(usize, u64)> {
        let last = self.last_of_dumps.get(&space)?;
        let is_last = |entry: &perf_map::Entry<'_>| {
            (entry.address, entry.size) == (last.address, last.size)
                && function_hash(entry.name) == last.function
        };
        let at = entries.enumerate().filter(|(_, entry)| is_last(entry)).last()?.0;
        Some((at.saturating_add(1), last.time))
    }

    /// Adds the lines of a perf map. They have no times: `earliest` tells from when on the addresses of a line are its code's, or `None` if
    /// they are a file's. A later line replaces an earlier one. Returns the number of lines that were used.
    pub fn add_map(
        &mut self,
        entries: impl Iterator<Item = perf_map::Entry<'a>>,
        space: AddressSpaceId,
        mut earliest: impl FnMut(&Range<u64>) -> Option<u64>,
    ) -> usize {
        let before = self.builder.len();
        for entry in entries {
            let range = entry.address..entry.address.saturating_add(entry.size);
            let size = range.end - range.start;
            if range.is_empty() || size > content::LARGEST_CODE {
                continue;
            }
            let Some(time) = earliest(&range) else { continue };
            self.bytes += entry.name.len() as u64;
            let origin = Origin::Map(u32::try_from(self.map_names.len()).unwrap_or(u32::MAX));
            self.map_names.push(entry.name);
            let code = Code { address: entry.address, size, origin };
            self.builder.load(space, time, code);
        }
        self.builder.len() - before
    }

    /// Number of codes that were added so far.
    pub fn added(&self) -> usize {
        self.builder.len()
    }

    /// The lowest address and the highest end of the codes with these numbers; 0 if there are none. The history must be complete.
    pub fn addresses(&self, numbers: Range<usize>) -> (u64, u64) {
        let numbers = numbers.filter_map(|number| u32::try_from(number).ok());
        let ranges = numbers.map(|number| self.history.code(CodeId(number)).range());
        let all = ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end));
        all.map_or((0, 0), |all| (all.start, all.end))
    }

    /// Evaluates the events of all address spaces. Call it once, after all sources were added.
    pub fn finish(&mut self, index: &RecordingIndex, spaces: &AddressSpaces) {
        let mut builder = std::mem::take(&mut self.builder);
        // A file that is mapped over code ends that code; an event that repeats an existing mapping does not.
        for map in &index.maps {
            if builder.has_code(map.space) && spaces.brings_new_file(index, map) {
                builder.clear(map.space, map.time, map.range.clone());
            }
        }
        self.history = builder.finish(&index.processes, COPIED);
    }
}
