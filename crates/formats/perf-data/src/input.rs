//! A recording of any form, as one stream of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::attr::{ATTR_SIZE_MIN, Attr};
use crate::attrs::Attrs;
use crate::endian::{Cursor, Endian};
use crate::error::{Cause, End, Error};
use crate::event::Event;
use crate::event_header::{Header as EventHeader, encode_event, kind};
use crate::features::{Features, feature};
use crate::header::{FileHeader, PIPE_HEADER_SIZE, Section, Start};
use crate::pipe::PipeHeader;
use crate::source::{Layout, Source, SourceEnd};
use crate::store::Store;

/// Bytes read at a time from a single file.
const CHUNK: usize = 1 << 20;
/// The same for each of a directory's files.
const DIRECTORY_CHUNK: usize = 1 << 17;
/// Bytes of merged events between two FINISHED_ROUND events.
const ROUND: u64 = 1 << 20;

/// A recording opened for reading.
///
/// Every form gives the same view: attributes and features are known once it is open, and
/// [`next_event`](Self::next_event) returns uncompressed events in file order.
/// - A stream in pipe format is read through once at the start, because attributes and features are among its events.
///   These are not returned again as events.
/// - A stream that cannot seek is first copied into an unlinked temporary file, in `$TMPDIR` or `/var/tmp`.
/// - The files of a directory that `perf record --threads` wrote are merged by time; each file is in the order of
///   time by itself. Such recordings lack FINISHED_ROUND events. They are inserted, so that readers need not hold all
///   events to sort them.
#[derive(Debug)]
pub struct Input {
    attrs: Attrs,
    features: Features,
    header_extra: Vec<u8>,
    attr_slot: u64,
    pipe: bool,
    features_end: Option<u64>,
    sources: Vec<Source>,
    merge: Option<Merge>,
    /// The source of the last event returned.
    current: usize,
}

/// State of merging a directory's files.
#[derive(Debug)]
struct Merge {
    /// Time and index of the sources that are positioned at an event.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// Latest time of each source.
    times: Vec<u64>,
    /// Sources that must be advanced before they can be queued again.
    stale: Vec<usize>,
    /// Bytes returned since the latest round ended.
    since_round: u64,
    finished_round: Vec<u8>,
}

impl Input {
    /// Opens a recording: a file in either format, a directory, a FIFO, or `-` for standard input.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::Malformed`] if the header or an attribute is invalid.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(Error::Read)?;
            return Self::from_file(File::from(stdin));
        }
        let metadata = fs::metadata(path).map_err(Error::Read)?;
        if metadata.is_dir() {
            return Self::open_directory(path);
        }
        Self::from_file(File::open(path).map_err(Error::Read)?)
    }

    /// Reads a recording from an open file. If it cannot seek, it is copied first.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn from_file(file: File) -> Result<Self, Error> {
        let regular = file.metadata().map_err(Error::Read)?.is_file();
        Self::new(if regular { Store::file(file)? } else { Store::spool(file)? })
    }

    /// Copies a stream and reads the copy.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn from_stream(stream: impl Read) -> Result<Self, Error> {
        Self::new(Store::spool(stream)?)
    }

    /// Reads a recording in memory.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::new(Store::Memory(bytes))
    }

    fn new(store: Store) -> Result<Self, Error> {
        match Start::read(&store)? {
            Start::Pipe(endian) => Self::new_pipe(store, endian),
            Start::File(header) => Self::new_file(store, header, CHUNK),
        }
    }

    fn new_pipe(store: Store, endian: Endian) -> Result<Self, Error> {
        let layout = Layout {
            endian,
            start: PIPE_HEADER_SIZE,
            end: store.len(),
            finished: true,
            unpack: false,
            hide_header_events: false,
        };
        let mut scan = Source::new(store, layout, CHUNK);
        let PipeHeader { attrs, features, features_end } = PipeHeader::scan(&mut scan)?;
        let layout = Layout { unpack: true, hide_header_events: true, ..layout };
        let sizes = attrs.list().iter().map(|attr| u64::try_from(attr.raw().len()));
        let attr_slot = sizes.flatten().fold(u64::from(ATTR_SIZE_MIN), u64::max);
        Ok(Self {
            attrs,
            features,
            header_extra: Vec::new(),
            attr_slot,
            pipe: true,
            features_end,
            sources: vec![Source::new(scan.store, layout, CHUNK)],
            merge: None,
            current: 0,
        })
    }

    fn new_file(store: Store, header: FileHeader, chunk: usize) -> Result<Self, Error> {
        let endian = header.endian;
        let mut attrs = Attrs::new(endian, read_attrs(&store, &header)?);
        let killed = header.data.size == 0 && !is_empty_recording(&store, &header)?;
        let features = if killed { Features::default() } else { Features::read(&store, &header)? };
        attrs.name_all(features.event_names(endian).into_iter());
        let layout = Layout {
            endian,
            start: header.data.offset,
            end: if killed { store.len() } else { header.data.end().unwrap_or(u64::MAX) },
            finished: !killed,
            unpack: true,
            hide_header_events: false,
        };
        Ok(Self {
            attrs,
            features,
            header_extra: header.extra,
            attr_slot: header.attr_size.saturating_sub(IDS_SECTION_SIZE),
            pipe: false,
            features_end: None,
            sources: vec![Source::new(store, layout, chunk)],
            merge: None,
            current: 0,
        })
    }

    fn open_directory(path: &Path) -> Result<Self, Error> {
        let open = |path: &Path| Store::file(File::open(path).map_err(Error::Read)?);
        let store = open(&path.join("data"))?;
        let Start::File(header) = Start::read(&store)? else {
            return Err(Error::malformed(0, Cause::HeaderSize(PIPE_HEADER_SIZE)));
        };
        let endian = header.endian;
        let mut input = Self::new_file(store, header, DIRECTORY_CHUNK)?;
        for file in directory_files(path)? {
            let store = open(&file)?;
            let layout = Layout {
                endian,
                start: 0,
                end: store.len(),
                finished: true,
                unpack: true,
                hide_header_events: false,
            };
            input.sources.push(Source::new(store, layout, DIRECTORY_CHUNK));
        }
        if input.sources.len() > 1 {
            input.merge = Some(Merge {
                waiting: BinaryHeap::new(),
                times: vec![0; input.sources.len()],
                stale: (0..input.sources.len()).collect(),
                since_round: 0,
                finished_round: encode_event(endian, kind::FINISHED_ROUND, 0, &[])
                    .unwrap_or_default(),
            });
        }
        Ok(input)
    }

    /// The events that were recorded.
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// Byte order of the recording.
    pub fn endian(&self) -> Endian {
        self.attrs.endian()
    }

    /// The feature sections, as recorded.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Whether the recording is in pipe format.
    pub fn is_pipe(&self) -> bool {
        self.pipe
    }

    /// The number in the marker behind the features of a pipe.
    pub(crate) fn features_end(&self) -> Option<u64> {
        self.features_end
    }

    /// What a newer file header has behind the known fields.
    pub(crate) fn header_extra(&self) -> &[u8] {
        &self.header_extra
    }

    /// Size in bytes of the space that the file has for each `perf_event_attr`.
    pub(crate) fn attr_slot(&self) -> u64 {
        self.attr_slot
    }

    /// The next event, or `None` at the end; [`Self::end`] then returns how it ended.
    ///
    /// # Errors
    /// [`Error::Read`] only: invalid bytes end the events with [`End::Damaged`].
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        match &mut self.merge {
            None => {
                let Some(source) = self.sources.first_mut() else { return Ok(None) };
                Ok(if source.advance()? { source.event(&self.attrs) } else { None })
            }
            Some(merge) => match merge.advance(&mut self.sources, &self.attrs)? {
                Merged::From(index) => {
                    self.current = index;
                    Ok(self.sources.get(index).and_then(|source| source.event(&self.attrs)))
                }
                Merged::Round => Ok(Some(Event {
                    offset: 0,
                    bytes: &merge.finished_round,
                    attrs: &self.attrs,
                    payload: None,
                })),
                Merged::End => Ok(None),
            },
        }
    }

    /// Ends the events, and returns the events that [`Self::next_event`] has not returned as a range of bytes in a
    /// file. Returns `None`, and changes nothing, if they are not contiguous in one file in this form (compressed, a
    /// directory's, a pipe's, with payloads), or were not read to their end before.
    pub(crate) fn take_rest(&mut self) -> Option<(&Store, Range<u64>)> {
        let ([source], None) = (self.sources.as_mut_slice(), &self.merge) else { return None };
        let rest = source.take_rest()?;
        Some((&source.store, rest))
    }

    /// How the events ended, once [`Self::next_event`] has returned `None`. For a directory, this is the end of the
    /// first file that did not end properly.
    pub fn end(&self) -> End {
        let mut all = End::Complete;
        for (file, source) in (0..).zip(&self.sources) {
            match source.end() {
                SourceEnd::NotReached => return End::NotReached,
                SourceEnd::Complete => {}
                _ if all != End::Complete => {}
                SourceEnd::CutOff(offset) => all = End::CutOff { file, offset },
                SourceEnd::Damaged(offset, cause) => all = End::Damaged { file, offset, cause },
            }
        }
        all
    }

    /// Starts again at the first event.
    pub fn restart(&mut self) {
        self.sources.iter_mut().for_each(Source::restart);
        self.current = 0;
        if let Some(merge) = &mut self.merge {
            merge.waiting.clear();
            merge.times.fill(0);
            merge.stale = (0..self.sources.len()).collect();
            merge.since_round = 0;
        }
    }
}

enum Merged {
    From(usize),
    Round,
    End,
}

impl Merge {
    fn advance(&mut self, sources: &mut [Source], attrs: &Attrs) -> Result<Merged, Error> {
        while let Some(index) = self.stale.pop() {
            let Some(source) = sources.get_mut(index) else { continue };
            if source.advance()? {
                let time = source.event(attrs).and_then(|event| event.timestamp());
                if let Some(latest) = self.times.get_mut(index) {
                    // Records without a timestamp stay behind the record before them.
                    *latest = time.unwrap_or_default().max(*latest);
                    self.waiting.push(Reverse((*latest, index)));
                }
            }
        }
        if self.since_round >= ROUND {
            self.since_round = 0;
            return Ok(Merged::Round);
        }
        let Some(Reverse((_, index))) = self.waiting.pop() else { return Ok(Merged::End) };
        self.stale.push(index);
        let size = sources.get(index).and_then(|source| source.event(attrs));
        let size = size.map_or(0, |event| event.bytes().len());
        self.since_round = self.since_round.saturating_add(u64::try_from(size).unwrap_or_default());
        Ok(Merged::From(index))
    }
}

/// Size of the section descriptor behind each attribute, which locates its ids.
const IDS_SECTION_SIZE: u64 = 16;

/// More bytes than the attributes of any real recording. A sparse file may claim any size.
const ATTRS_MAX: u64 = 1 << 26;
/// The same for all ids together.
const IDS_MAX: u64 = 1 << 28;

fn read_attrs(store: &Store, header: &FileHeader) -> Result<Vec<Attr>, Error> {
    let wrong = |cause| Error::malformed(header.attrs.offset, cause);
    if header.attrs.size > ATTRS_MAX {
        return Err(wrong(Cause::SectionOutside));
    }
    let table = store.section(header.attrs.offset, header.attrs.size)?;
    let raw_size = header.attr_size.checked_sub(IDS_SECTION_SIZE);
    let raw_size = raw_size.filter(|size| (ATTR_SIZE_MIN.into()..1 << 16).contains(size));
    let raw_size = raw_size.ok_or(wrong(Cause::AttrSize(header.attr_size)))?;
    let mut at = Cursor::new(&table, header.endian);
    let mut list = Vec::new();
    // Overlapping id lists could expand a small file.
    let mut ids_budget = store.len().min(IDS_MAX);
    while let Some(raw) = at.bytes(raw_size) {
        let section = Section::read(&mut at).ok_or(wrong(Cause::SectionOutside))?;
        ids_budget = ids_budget.checked_sub(section.size).ok_or(wrong(Cause::IdsOverlap))?;
        let ids = store.section(section.offset, section.size)?;
        let mut ids = Cursor::new(&ids, header.endian);
        let ids = std::iter::from_fn(|| ids.u64()).collect();
        list.extend(Attr::parse(raw, ids, header.endian));
    }
    Ok(list)
}

/// Whether a data size of 0 is intended, and not left by a recorder that was killed. If so, the table of feature
/// sections is where events would be, and its start looks like an event of size 0.
fn is_empty_recording(store: &Store, header: &FileHeader) -> Result<bool, Error> {
    let mut start = [0; 8];
    let read = store.read_at(&mut start, header.data.offset)?;
    let size = EventHeader::of(&start, header.endian).size;
    Ok(read < start.len() || (size == 0 && !header.features.is_empty()))
}

/// The `data.N` files of a directory, sorted by number.
fn directory_files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(Error::Read)? {
        let path = entry.map_err(Error::Read)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(Ok(number)) = name.strip_prefix("data.").map(str::parse::<u32>) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

impl Input {
    /// Whether a feature describes the form of the input, which does not apply to the events returned here.
    pub(crate) fn is_about_form(number: u8) -> bool {
        matches!(number, feature::COMPRESSED | feature::DIR_FORMAT)
    }
}
