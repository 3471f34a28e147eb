//! The first reading of a recording: processes, their mappings, and the clock.

use std::collections::HashMap;
use std::ops::Range;

use code_timeline::{AddressSpaceId, Processes};
use perf_data::{Endian, Event, FileIdentity, Input, Record, TimeConv, kind, misc, sample_type};

use super::clock::RecordingClock;
use super::kept_files::KeptFiles;
use crate::files::{Inode, looks_like_marker, pid_of_jitted, pid_of_perf_image};
use crate::interner::{Interner, NameId};

/// The position of an event among all events of a recording; the same in every reading.
pub type Ordinal = u64;

/// A mapping in the recording.
#[derive(Clone, Debug)]
pub struct MapEvent {
    /// The address space.
    pub space: AddressSpaceId,
    /// The addresses.
    pub range: Range<u64>,
    /// Its time, in nanoseconds of the recording's clock; 0 for mappings from before it began.
    pub time: u64,
    /// Its event.
    pub ordinal: Ordinal,
    /// The mapped file, or the kernel's name for memory without a file.
    pub name: NameId,
    /// The difference between the addresses and the offsets in the file.
    pub above_offset: u64,
    /// Whether no file backs the memory: JITs put their code there.
    pub anonymous: bool,
    /// Whether it shows code of a JIT: an image, or a file of `perf inject --jit`. The memory itself has no file.
    pub jitted: bool,
    /// What the recording has to identify the file.
    pub file: Option<FileIdentity>,
    /// Whether the recording has another name for the file, which is kept elsewhere.
    pub renamed: bool,
}

#[cfg(test)]
impl MapEvent {
    /// For tests: in the first address space, and with the first name.
    pub fn made(
        name: u32,
        range: Range<u64>,
        time: u64,
        ordinal: Ordinal,
        anonymous: bool,
    ) -> Self {
        let mut processes = Processes::new();
        processes.add(1);
        let space = processes.at(1, 0).expect("an address space");
        let name = NameId::made(name);
        let (above_offset, jitted, file) = (0, false, None);
        let renamed = false;
        Self { space, range, time, ordinal, name, above_offset, anonymous, jitted, file, renamed }
    }
}

#[cfg(test)]
impl RecordingIndex {
    /// For tests: one process with these mappings, in the order of time.
    pub fn made(maps: Vec<MapEvent>) -> Self {
        let mut processes = Processes::new();
        processes.add(1);
        Self {
            by_space: BySpace::new(&maps, 1),
            processes,
            maps,
            names: Interner::default(),
            clock: RecordingClock::default(),
            stack_copies: false,
            has_trace: false,
            events: 0,
            last_sample: 0,
            has_times: true,
            comms: HashMap::new(),
            begun: HashMap::new(),
            inodes: HashMap::new(),
            kernel_text: None,
            kernel_symbols: Vec::new(),
            kept_ids: Vec::new(),
        }
    }
}

/// The time of a sample without one: that of what is there at the end. What was never gone is gone at `u64::MAX`.
pub(crate) const WITHOUT_TIME: u64 = u64::MAX - 1;

/// Code that the kernel compiled, and that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its name: of a BPF program, `bpf_prog_TAG_NAME`.
    pub name: Vec<u8>,
}

/// The results of the first reading of a recording.
#[derive(Debug)]
pub struct RecordingIndex {
    /// The address spaces of all processes.
    pub processes: Processes,
    /// All mappings, in the order of time.
    pub maps: Vec<MapEvent>,
    /// The indices in `maps`, by address space.
    by_space: BySpace,
    /// Names of mappings.
    pub names: Interner,
    /// The clock of the recording's times.
    pub clock: RecordingClock,
    /// Whether samples have copies of the stack, which are unwound when the recording is read.
    pub stack_copies: bool,
    /// Whether it has a trace of all instructions, which may run through any code.
    pub has_trace: bool,
    /// Number of events.
    pub events: u64,
    /// The time of the last sample, or of the last event if there is a trace of instructions; 0 if there is none.
    pub last_sample: u64,
    /// Whether any sample has a time, as far as there are samples.
    pub has_times: bool,
    /// The address of the kernel's code.
    pub kernel_text: Option<u64>,
    /// Code that the kernel compiled, such as BPF programs.
    pub kernel_symbols: Vec<KernelSymbol>,
    /// The last name of each process.
    comms: HashMap<u32, Vec<u8>>,
    /// The event that began an address space: a fork or an exec.
    begun: HashMap<(u32, u64), Ordinal>,
    /// The mapped files of a process with the names of dumps.
    inodes: HashMap<(u32, NameId), Inode>,
    /// The build-ids of mapped files that are kept elsewhere, with their paths there.
    kept_ids: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RecordingIndex {
    /// Reads the recording from its beginning to its end.
    pub fn read(
        recording: &mut Input,
        kept: &KeptFiles,
        tick: impl Fn(u64),
    ) -> Result<Self, perf_data::Error> {
        let mut found = Raw { kept: kept.clone(), ..Raw::default() };
        while let Some(event) = recording.next_event()? {
            let ordinal = found.events;
            found.events += 1;
            match event.kind() {
                kind::SAMPLE => {
                    let time = event.timestamp();
                    found.has_times |= time.is_some();
                    found.samples += 1;
                    found.last_sample = found.last_sample.max(time.unwrap_or(0));
                }
                kind::MMAP
                | kind::MMAP2
                | kind::COMM
                | kind::FORK
                | kind::KSYMBOL
                | kind::TIME_CONV => {
                    // Events that cannot be decoded are passed on unchanged.
                    if let Ok(record) = event.record() {
                        found.take(record, event.timestamp().unwrap_or(0), ordinal);
                    }
                }
                kind::AUXTRACE_INFO => found.has_trace |= is_instruction_trace(&event),
                _ => {}
            }
            // A trace has its times in data of its own, and need not come with samples.
            if found.has_trace {
                found.last_sample = found.last_sample.max(event.timestamp().unwrap_or(0));
            }
            if ordinal.is_multiple_of(4096) {
                tick(event.offset());
            }
        }
        let attrs = recording.attrs();
        let stack_copies = attrs.list().iter().any(|attr| attr.has(sample_type::STACK_USER));
        let clock = RecordingClock::detect(attrs, found.time_conv);
        Ok(found.finish(stack_copies, clock))
    }

    /// The file with this name that process `pid` mapped, if it has the name of a dump and the recording has its inode.
    pub fn inode(&self, pid: u32, name: NameId) -> Option<Inode> {
        self.inodes.get(&(pid, name)).copied()
    }

    /// The inode numbers of mapped files, as far as they are recorded. Those that are kept elsewhere have others there.
    pub fn file_inodes(&self) -> impl Iterator<Item = (NameId, u64)> {
        let maps = self.maps.iter().filter(|map| !map.anonymous && !map.renamed);
        maps.filter_map(|map| match map.file? {
            FileIdentity::Inode { inode: 0, .. } | FileIdentity::BuildId(_) => None,
            FileIdentity::Inode { inode, .. } => Some((map.name, inode)),
        })
    }

    /// The paths of mapped files that are kept elsewhere, with their build-ids.
    pub fn kept_build_ids(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.kept_ids.iter().map(|(path, id)| (path.as_slice(), id.as_slice()))
    }

    /// The last name of process `pid`.
    pub fn comm(&self, pid: u32) -> String {
        match self.comms.get(&pid) {
            Some(comm) => String::from_utf8_lossy(comm).into_owned(),
            None => format!(":{pid}"),
        }
    }

    /// When `space` began, and by which event; time 0 if it existed before the recording.
    pub fn begin(&self, space: AddressSpaceId) -> (u64, Option<Ordinal>) {
        let (pid, from) = (self.processes.pid(space), self.processes.from(space));
        (from, self.begun.get(&(pid, from)).copied())
    }

    /// Like [`Self::maps_of`], with the index of each in `maps`.
    pub fn numbered_maps_of(
        &self,
        space: AddressSpaceId,
    ) -> impl Iterator<Item = (usize, &MapEvent)> {
        let places = self.by_space.of(space).iter().map(|&place| place as usize);
        places.filter_map(|place| Some((place, self.maps.get(place)?)))
    }

    /// The mappings of one address space, in the order of time.
    pub fn maps_of(&self, space: AddressSpaceId) -> impl Iterator<Item = &MapEvent> {
        self.numbered_maps_of(space).map(|(_, map)| map)
    }

    /// Whether `perf inject --jit` has written the recording: files of its are mapped.
    pub fn is_after_perf_inject(&self) -> bool {
        self.names.iter().any(|name| pid_of_perf_image(name).is_some())
    }

    /// The name of a mapping.
    pub fn name(&self, map: &MapEvent) -> &[u8] {
        self.names.get(map.name)
    }
}

/// Whether an AUXTRACE_INFO event announces a trace of instructions. Its first number says which: Intel PT, Intel BTS and CoreSight are of that kind; Arm's SPE
/// and others are samples (perf: `enum auxtrace_type` in util/auxtrace.h).
fn is_instruction_trace(event: &Event<'_>) -> bool {
    let number = event.body().first_chunk().map(|&bytes| match event.endian() {
        Endian::Little => u32::from_le_bytes(bytes),
        Endian::Big => u32::from_be_bytes(bytes),
    });
    matches!(number, Some(1..=3))
}

/// Indices of mappings by address space, and within each in the order of time.
#[derive(Debug, Default)]
struct BySpace {
    /// The position where each address space's indices begin; one more than there are address spaces.
    begins: Vec<u32>,
    places: Vec<u32>,
}

impl BySpace {
    fn new(maps: &[MapEvent], spaces: usize) -> Self {
        let mut places: Vec<u32> = (0..).take(maps.len()).collect();
        // The sort is stable: by time within an address space.
        places.sort_by_key(|&place| maps[place as usize].space);
        let mut begins = vec![0; spaces + 1];
        for map in maps {
            begins[map.space.index() + 1] += 1;
        }
        for space in 0..spaces {
            begins[space + 1] += begins[space];
        }
        Self { begins, places }
    }

    fn of(&self, space: AddressSpaceId) -> &[u32] {
        let begin = |space: usize| self.begins.get(space).map(|&begin| begin as usize);
        let range = begin(space.index()).zip(begin(space.index() + 1));
        range.and_then(|(begin, end)| self.places.get(begin..end)).unwrap_or(&[])
    }
}

/// A mapping of a process, before the address space is known.
struct RawMap {
    pid: u32,
    range: Range<u64>,
    time: u64,
    ordinal: Ordinal,
    name: NameId,
    above_offset: u64,
    file: Option<FileIdentity>,
    renamed: bool,
}

/// No process has a longer name: the kernel truncates names to 15 bytes. Each fork has its parent's name.
const LONGEST_COMM: usize = 64;

#[derive(Default)]
struct Raw {
    processes: Processes,
    maps: Vec<RawMap>,
    names: Interner,
    time_conv: Option<TimeConv>,
    events: u64,
    last_sample: u64,
    samples: u64,
    has_times: bool,
    has_trace: bool,
    comms: HashMap<u32, Vec<u8>>,
    begun: HashMap<(u32, u64), Ordinal>,
    inodes: HashMap<(u32, NameId), Inode>,
    kernel_text: Option<u64>,
    kernel_symbols: Vec<KernelSymbol>,
    kept: KeptFiles,
}

impl Raw {
    fn take(&mut self, record: Record<'_>, time: u64, ordinal: Ordinal) {
        match record {
            Record::Mmap(map) if map.misc & misc::CPU_MODE_MASK == misc::USER => {
                self.processes.add(map.pid);
                let kept = self.kept.name_of(&map);
                let renamed = kept.is_some();
                // Another file has another inode number.
                let file = map.detail.map(|detail| detail.file);
                let file = if renamed { file.map(FileIdentity::of_copy) } else { file };
                let name = self.names.intern(kept.as_deref().unwrap_or(map.filename));
                if let Some(FileIdentity::Inode { major, minor, inode, .. }) = file
                    && looks_like_marker(map.filename)
                {
                    let inode = Inode { device: (major, minor), number: inode };
                    self.inodes.insert((map.pid, name), inode);
                }
                let range = map.address..map.address.saturating_add(map.len);
                let above_offset = map.address.wrapping_sub(map.page_offset);
                self.maps.push(RawMap {
                    pid: map.pid,
                    range,
                    time,
                    ordinal,
                    name,
                    above_offset,
                    file,
                    renamed,
                });
            }
            // perf puts the address of a symbol there that the kernel's code begins with.
            Record::Mmap(map) if map.filename.starts_with(b"[kernel.kallsyms]") => {
                self.kernel_text.get_or_insert(map.page_offset);
            }
            Record::Comm(comm) => {
                if comm.exec {
                    self.processes.exec(comm.pid, time);
                    self.begun.insert((comm.pid, time), ordinal);
                } else {
                    self.processes.add(comm.pid);
                }
                if comm.pid == comm.tid {
                    let name = comm.name.get(..LONGEST_COMM).unwrap_or(comm.name);
                    self.comms.insert(comm.pid, name.to_vec());
                }
            }
            Record::Fork(fork) if fork.pid != fork.parent_pid => {
                // A recording that began later has the older processes as forks at time 0.
                if time == 0 {
                    self.processes.add(fork.pid);
                } else {
                    self.processes.fork(fork.pid, fork.parent_pid, time);
                    self.begun.insert((fork.pid, time), ordinal);
                    if let Some(comm) = self.comms.get(&fork.parent_pid).cloned() {
                        self.comms.entry(fork.pid).or_insert(comm);
                    }
                }
            }
            Record::TimeConv(conv) => self.time_conv = Some(conv),
            Record::Ksymbol(symbol) if !symbol.unregistered => {
                self.kernel_symbols.push(KernelSymbol {
                    range: symbol.address..symbol.address.saturating_add(symbol.len.into()),
                    name: symbol.name.to_vec(),
                });
            }
            _ => {}
        }
    }

    fn finish(self, stack_copies: bool, clock: RecordingClock) -> RecordingIndex {
        let Self {
            processes,
            maps,
            names,
            events,
            last_sample,
            has_trace,
            comms,
            begun,
            inodes,
            kernel_text,
            mut kernel_symbols,
            samples,
            has_times,
            kept,
            ..
        } = self;
        let kept_ids = kept.kept().filter_map(|(path, id)| {
            let is_mapped = names.iter().any(|name| name == path);
            Some((path.to_vec(), id.filter(|_| is_mapped)?.to_vec()))
        });
        let kept_ids = kept_ids.collect();
        // Of several at one address, the last.
        kernel_symbols.reverse();
        kernel_symbols.sort_by_key(|symbol| symbol.range.start);
        kernel_symbols.dedup_by_key(|symbol| symbol.range.start);
        let anonymous: Vec<bool> = names.iter().map(is_anonymous).collect();
        let jitted: Vec<bool> = names.iter().map(|name| pid_of_jitted(name).is_some()).collect();
        let mut maps: Vec<MapEvent> = maps
            .into_iter()
            .filter_map(|raw| {
                let RawMap { pid, range, time, ordinal, name, above_offset, file, renamed } = raw;
                let space = processes.at(pid, time)?;
                Some(MapEvent {
                    space,
                    range,
                    time,
                    ordinal,
                    name,
                    above_offset,
                    anonymous: anonymous[name.index()],
                    jitted: jitted[name.index()],
                    file,
                    renamed,
                })
            })
            .collect();
        maps.sort_by_key(|map| (map.time, map.ordinal));
        let by_space = BySpace::new(&maps, processes.spaces().count());
        RecordingIndex {
            processes,
            maps,
            by_space,
            names,
            clock,
            stack_copies,
            events,
            last_sample,
            has_trace,
            comms,
            begun,
            inodes,
            has_times: has_times || samples == 0,
            kernel_text,
            kernel_symbols,
            kept_ids,
        }
    }
}

/// Whether the kernel's or perf's name of a mapping means memory without a file.
///
/// The list is that of perf's `is_anon_memory` and `is_no_dso_memory` (tools/perf/util/map.c), plus what they leave
/// out: named anonymous memory, and memfds.
fn is_anonymous(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 8] = [
        b"//anon",
        b"[anon:",
        b"/memfd:",
        b"/dev/zero",
        b"/anon_hugepage",
        b"/SYSV",
        b"[heap]",
        b"[stack",
    ];
    name.is_empty() || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
