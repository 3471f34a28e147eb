//! Reads jitdumps and perf maps into the table of code.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use code_image::{Endian, Target};
use code_timeline::{AddressSpaceId, ranges};
use jitdump::{CodeEvent, DumpFile, Header, OpenError, Quirks, RecordClock};
use perf_data::Features;

use super::code_table::{AddedCodes, CodeTable, OpenDump};
use super::earlier_maps::RecordingBegin;
use super::locate::{LocatedSources, SearchPaths, Source, locate};
use super::named_by_file::{LeftToFiles, NamedByFile};
use super::qemu::{Guest, GuestFiles, MapBlocks, translate_dump, translate_map};
use super::unusable::{self, Unusable, UnusableFile};
use super::v8_log::LoggedCodes;
use crate::files::content;
use crate::files::{Damage, Kind, RecordedFiles, SourceFile, SourceFiles, as_jitdump, report_end};
use crate::limits::LARGEST_MAPS;
use crate::recording::Recording;
use crate::recording::address_space::AddressSpaces;
use crate::recording::clock::{DumpTimes, NoConversion, RecordingClock, Translation};
use crate::recording::recording_index::RecordingIndex;
use crate::summary::report::SourceReport;
use crate::warning::{OtherRun, Warning};

/// How much clocks may differ before a dump is attributed to another run, in nanoseconds.
const APART: u64 = 1_000_000_000;

/// The files that describe a recording's code, and the content of the perf maps among them, from which [`Codes`] borrows.
#[derive(Debug)]
pub struct Sources {
    list: Vec<Source>,
    /// The content of each perf map; empty for other files.
    contents: Vec<Vec<u8>>,
    /// Number of markers of jitdumps in the recording.
    markers: usize,
    unusable: Vec<UnusableFile>,
}

impl Sources {
    /// Finds the files of a recording, and reads all perf maps. Jitdumps are large, so they are read in parts when they
    /// are used. Files that are missing or cannot be read are reported in `warnings`.
    pub fn find(
        recording: &Recording,
        paths: &SearchPaths,
        files: &dyn SourceFiles,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let index = &recording.index;
        let LocatedSources { sources, warnings: missing, mut unusable, markers } =
            locate(index, paths, RecordingBegin::of(recording), files);
        warnings.extend(missing);
        let contents = read_maps(&sources, files, index, &mut unusable, warnings);
        Self { list: sources, contents, markers, unusable }
    }

    /// The files.
    #[must_use]
    pub fn list(&self) -> &[Source] {
        &self.list
    }

    /// The user of a process whose code they describe; `None` if that is not known, or not one user.
    pub(crate) fn user_of(
        &self,
        pid: u32,
        index: &RecordingIndex,
        files: &dyn SourceFiles,
    ) -> Option<u32> {
        let of_process = |source: &&Source| index.processes.pid(source.space) == pid;
        let own = self.list.iter().filter(of_process);
        let mut users = own.map(|source| files.user_of(pid, &source.path));
        let first = users.next()??;
        users.all(|user| user == Some(first)).then_some(first)
    }

    /// Number of markers of jitdumps in the recording.
    #[must_use]
    pub fn markers(&self) -> usize {
        self.markers
    }

    /// Files of the recorded processes that cannot be used, as far as this is known before [their code is read](Self::read).
    #[must_use]
    pub fn unusable(&self) -> &[UnusableFile] {
        &self.unusable
    }

    /// Reads the code that they describe. What cannot be used is reported in `warnings`.
    pub fn read(
        &self,
        recording: &Recording,
        files: &dyn SourceFiles,
        warnings: &mut Vec<Warning>,
    ) -> Codes<'_> {
        let Recording { input, index, spaces, replaced, .. } = recording;
        let recorded = RecordedFiles::new(input, &index.names, replaced, files);
        Codes::read(self, index, spaces, &recorded, warnings)
    }
}

fn read_maps(
    sources: &[Source],
    files: &dyn SourceFiles,
    index: &RecordingIndex,
    unusable: &mut Vec<UnusableFile>,
    warnings: &mut Vec<Warning>,
) -> Vec<Vec<u8>> {
    let mut left = LARGEST_MAPS;
    let mut reject = |source: &Source, why| unusable::add(unusable, source.unusable(index, why));
    let read = |source: &Source| {
        if source.kind != Kind::PerfMap {
            return Vec::new();
        }
        let path = source.path.clone();
        let most = left.min(content::LARGEST_MAP);
        let content =
            files.open(&source.path, source.owner).and_then(|file| content::text(&file, most));
        let content = match content {
            Ok(content) => content,
            Err(error) => {
                reject(source, Unusable::from(&error));
                warnings.push(Warning::Unreadable { path, cause: error.to_string() });
                return Vec::new();
            }
        };
        if content.bytes.is_empty() && content.left_out.is_none() {
            reject(source, Unusable::Empty);
        } else if !perf_map::entries(&content.bytes).any(|entry| entry.is_ok()) {
            reject(source, Unusable::OtherFormat);
        }
        match content.left_out {
            Some(left_out) => warnings.push(Warning::PartlyRead { path, left_out }),
            None if content.bytes.is_empty() => warnings.push(Warning::Empty { path }),
            None => {}
        }
        left -= left.min(content.bytes.len() as u64);
        content.bytes
    };
    sources.iter().map(read).collect()
}

/// What is known of the guests of QEMU's.
struct Guests<'s, 'f> {
    /// Their perf maps.
    maps: HashMap<AddressSpaceId, MapBlocks<'s>>,
    files: GuestFiles<'f>,
}

/// All code, and the target machine of each process's code.
#[derive(Debug)]
pub struct Codes<'a> {
    pub(crate) table: CodeTable<'a>,
    /// A report for each file.
    pub(crate) reports: Vec<SourceReport>,
    /// The target machine of each process.
    pub(crate) targets: Targets,
    /// The processes whose code perf names without images, from a perf map where perf looks for it.
    pub(crate) named_by_perf: HashSet<u32>,
    /// Number of codes that are left to the files that they are in.
    pub(crate) left_to_files: usize,
    /// Files that cannot be used: those that were found so before, and jitdumps that turned out so.
    pub(crate) unusable: Vec<UnusableFile>,
}

/// The target machine of each address space with a dump.
#[derive(Debug, Default)]
pub struct Targets {
    of_dumps: BTreeMap<AddressSpaceId, Target>,
    /// By address space: that of its own dump, or of the process that it was forked from.
    of: Vec<Option<Target>>,
}

impl<'a> Codes<'a> {
    /// Reads all sources.
    pub(crate) fn read(
        sources: &'a Sources,
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        recorded: &RecordedFiles<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let files = recorded.opened_by();
        let mut named_by_file = NamedByFile::new(index, spaces, recorded);
        let maps = sources.list.iter().zip(&sources.contents);
        let maps = maps.filter_map(|(source, map)| Some((source.space, MapBlocks::read(map)?)));
        let mut guests =
            Guests { maps: maps.collect(), files: GuestFiles::new(index, spaces, recorded) };
        let known_to_perf = sources.list.iter().filter(|source| source.known_to_perf);
        let mut all = Self {
            table: CodeTable::default(),
            reports: Vec::new(),
            targets: Targets::default(),
            named_by_perf: known_to_perf.map(|source| index.processes.pid(source.space)).collect(),
            left_to_files: 0,
            unusable: sources.unusable.clone(),
        };
        let mut numbers = Vec::new();
        for (source, bytes) in sources.list.iter().zip(&sources.contents) {
            let (logged, known) = (all.table.logged(), all.table.added());
            let (codes, clock_offset_ns) = match source.kind {
                Kind::Jitdump => {
                    all.add_dump(source, index, files, &mut named_by_file, &mut guests, warnings)
                }
                Kind::PerfMap => {
                    let guest = all.add_guest_map(
                        source,
                        index,
                        spaces,
                        &mut named_by_file,
                        &mut guests,
                        warnings,
                    );
                    let add = || {
                        let time = index.last_sample;
                        let files = &mut named_by_file;
                        all.add_map(source, bytes, (index, spaces), files, time, warnings)
                    };
                    (guest.unwrap_or_else(add), 0)
                }
            };
            numbers.push(known..all.table.added());
            all.reports.push(SourceReport {
                path: source.path.clone(),
                kind: source.kind,
                pid: index.processes.pid(source.space),
                codes,
                start: 0,
                end: 0,
                clock_offset_ns,
                codes_in_v8_log: all.table.logged() - logged,
            });
        }
        all.table.finish(index, spaces);
        for (report, numbers) in all.reports.iter_mut().zip(numbers) {
            (report.start, report.end) = all.table.addresses(numbers);
        }
        all.targets.inherit(index);
        all
    }

    /// A report for each file.
    #[must_use]
    pub fn sources(&self) -> &[SourceReport] {
        &self.reports
    }

    /// The number of codes; all code numbers are below it. Moved code counts once for each place.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.history.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add_dump(
        &mut self,
        source: &Source,
        index: &RecordingIndex,
        files: &dyn SourceFiles,
        named_by_file: &mut NamedByFile<'_>,
        guests: &mut Guests<'_, '_>,
        warnings: &mut Vec<Warning>,
    ) -> (usize, i64) {
        let added = self.try_add_dump(source, index, files, named_by_file, guests, warnings);
        added.unwrap_or_else(|error| {
            let (path, cause) = (source.path.clone(), error.to_string());
            let why = Unusable::Unreadable { cause: cause.clone() };
            unusable::add(&mut self.unusable, source.unusable(index, why));
            warnings.push(Warning::Unreadable { path, cause });
            (0, 0)
        })
    }

    fn try_add_dump(
        &mut self,
        source: &Source,
        index: &RecordingIndex,
        files: &dyn SourceFiles,
        named_by_file: &mut NamedByFile<'_>,
        guests: &mut Guests<'_, '_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(usize, i64), OpenError> {
        let path = || source.path.clone();
        let pid = index.processes.pid(source.space);
        let file = as_jitdump(files.open(&source.path, source.owner)?, pid)?;
        let metadata = file.metadata()?;
        let mut dump = DumpFile::open(file, metadata.len())?;
        let header = *dump.header();
        let quirks = dump.quirks()?;
        let machine = u16::try_from(quirks.machine).unwrap_or(0);
        let target = Target::new(machine, header.endian);
        self.targets.of_dumps.entry(source.space).or_insert(target);

        let first_load = first_load(&mut dump, quirks, |_| true)?;
        let times = match index.has_times {
            true => translation(&header, quirks, first_load, &index.clock, source, warnings),
            false => {
                warnings.push(Warning::ClockUnknown { path: path(), cause: NoConversion::NoTimes });
                None
            }
        };
        if let (Some(times), Some(first)) = (times, first_load)
            && let Some(why) = of_another_run(&mut dump, quirks, times, first, index, source)?
        {
            warnings.push(Warning::OtherRun { path: path(), why });
            return Ok((0, times.offset));
        }
        let time_of = |time| match times {
            Some(times) => times.apply(time),
            None => source.marker.unwrap_or(0),
        };
        let header_pid = header.pid;
        // A forked child that continues to write records its own pid. In a pid namespace, the numbers have no meaning
        // here, except the one that the marker translates.
        let space_of = |recorded: u32| {
            if recorded == header_pid || pid != header_pid {
                source.space
            } else {
                index.processes.at(recorded, u64::MAX).unwrap_or(source.space)
            }
        };
        let mut damage = Damage::default();
        let mut damaged = |error| damage.note(&error);
        let map = guests.maps.get(&source.space);
        let guest = Guest { space: source.space, pid };
        let translated = translate_dump(
            &mut dump,
            quirks,
            map,
            guest,
            time_of,
            &mut guests.files,
            &mut damaged,
        )?;
        if let Some(translated) = translated {
            if translated.in_files == 0 {
                warnings.push(Warning::NoGuestFiles { path: path() });
            }
            let len = translated.file.metadata()?.len();
            dump = DumpFile::open(translated.file, len)?;
        }
        self.table.reserve(source.space, content::size_on_disk(&metadata));
        let v8_logs = LoggedCodes::read(&source.v8_logs, files, warnings);
        named_by_file.take_left();
        let dump = OpenDump { path: path(), file: dump, quirks, v8_logs };
        let (count, outcome) =
            self.table.add_dump(dump, damaged, time_of, space_of, named_by_file, &index.processes);
        damage.report(&source.path, warnings);
        report_end(&source.path, count, outcome, warnings);
        let left = named_by_file.take_left();
        if count == 0 && left.codes == 0 {
            unusable::add(&mut self.unusable, source.unusable(index, Unusable::NoCode));
            warnings.push(Warning::NoCode { path: path() });
        }
        self.add_left(&left, count, &source.path, index, warnings);
        Ok((count, times.map_or(0, |times| times.offset)))
    }

    /// Adds the code of a guest of QEMU's from a perf map, with the guest's functions and lines. `None` if it is none, or if
    /// nothing is known of the guest.
    fn add_guest_map(
        &mut self,
        source: &Source,
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        named_by_file: &mut NamedByFile<'_>,
        guests: &mut Guests<'_, '_>,
        warnings: &mut Vec<Warning>,
    ) -> Option<usize> {
        let map = guests.maps.get(&source.space)?;
        let guest = Guest { space: source.space, pid: index.processes.pid(source.space) };
        let mapped = spaces.files_with_inherited(source.space);
        let is_taken = |range: &Range<u64>| !ranges::overlapping(&mapped, range).is_empty();
        let path = || source.path.clone();
        let mut damage = Damage::default();
        let mut add = || -> Result<Option<AddedCodes>, OpenError> {
            let time = index.last_sample;
            let translated = translate_map(map, guest, time, &mut guests.files, is_taken)?;
            if translated.in_files == 0 {
                return Ok(None);
            }
            let len = translated.file.metadata()?.len();
            let mut file = DumpFile::open(translated.file, len)?;
            let quirks = file.quirks()?;
            let dump = OpenDump { path: path(), file, quirks, v8_logs: LoggedCodes::default() };
            let damaged = |error| damage.note(&error);
            let space_of = |_| source.space;
            let processes = &index.processes;
            Ok(Some(self.table.add_dump(dump, damaged, |_| 0, space_of, named_by_file, processes)))
        };
        let added = add();
        match added {
            Ok(Some((count, outcome))) => {
                report_end(&source.path, count, outcome, warnings);
                damage.report(&source.path, warnings);
                Some(count)
            }
            Ok(None) => {
                warnings.push(Warning::NoGuestFiles { path: path() });
                None
            }
            Err(error) => {
                let cause = error.to_string();
                warnings.push(Warning::Unreadable { path: path(), cause });
                None
            }
        }
    }

    fn add_map(
        &mut self,
        source: &Source,
        bytes: &'a [u8],
        (index, spaces): (&RecordingIndex, &AddressSpaces),
        named_by_file: &mut NamedByFile<'_>,
        time: u64,
        warnings: &mut Vec<Warning>,
    ) -> usize {
        let mut damage = Damage::default();
        let entries = perf_map::entries(bytes).filter_map(|entry| match entry {
            Ok(entry) => Some(entry),
            Err(error) => {
                damage.note(&error);
                None
            }
        });
        let lines = perf_map::entries(bytes).flatten();
        let known = self.table.lines_in_dump(lines, source.space);
        let (skipped, since) = known.unwrap_or_default();
        let mut last = &b""[..];
        let has_dump = self.targets.of_dumps.contains_key(&source.space);
        let entries = entries.skip(skipped).filter(|entry| {
            let last = std::mem::replace(&mut last, entry.name);
            !(has_dump && is_bytecode(last, entry.name))
        });
        named_by_file.take_left();
        let files = spaces.files_with_inherited(source.space);
        let count = self.table.add_map(entries, source.space, |range| {
            match ranges::overlapping(&files, range).first() {
                None => Some(since),
                Some(file) if file.contains(&range.start) => {
                    let earliest = named_by_file.earliest(source.space, range.start, time);
                    earliest.map(|earliest| earliest.max(since))
                }
                // Code that only ends in a file is none that was in this process.
                Some(_) => None,
            }
        });
        damage.report(&source.path, warnings);
        self.add_left(&named_by_file.take_left(), count, &source.path, index, warnings);
        count
    }

    /// Counts the code of a source that was left to files. If no other code of the source was used, `warnings` says why.
    fn add_left(
        &mut self,
        left: &LeftToFiles,
        used: usize,
        source: &Path,
        index: &RecordingIndex,
        warnings: &mut Vec<Warning>,
    ) {
        self.left_to_files += left.codes;
        // That the recording has code of `perf inject --jit` is said once.
        if let Some((file, why)) = left.first.filter(|_| used == 0) {
            warnings.push(Warning::NamedByFiles {
                path: source.to_owned(),
                codes: left.codes - left.named_by_perf,
                file: PathBuf::from(OsStr::from_bytes(index.names.get(file))),
                why,
            });
        }
    }
}

impl Targets {
    /// The target machine of the code of `space`: from its dump, else from the recording.
    pub fn target(&self, space: AddressSpaceId, features: &Features) -> Target {
        let target = self.of.get(space.index()).copied().flatten();
        target.unwrap_or_else(|| recorded_on(features))
    }

    /// Sets the target of each address space without a dump to that of the process that it was forked from.
    fn inherit(&mut self, index: &RecordingIndex) {
        for space in index.processes.spaces() {
            let parent = || {
                let (parent, _) = index.processes.parent(space)?;
                // Parents precede their children.
                self.of.get(parent.index()).copied().flatten()
            };
            let target = self.of_dumps.get(&space).copied().or_else(parent);
            self.of.push(target);
        }
    }
}

/// The time of the first code of a dump for whose time `wanted` is true, in the dump's own clock.
fn first_load(
    dump: &mut DumpFile<SourceFile>,
    quirks: Quirks,
    wanted: impl Fn(u64) -> bool,
) -> io::Result<Option<u64>> {
    let mut found = None;
    dump.for_each_code(quirks, |event| match event {
        Ok(CodeEvent::Load(load)) if wanted(load.timestamp) => {
            found = Some(load.timestamp);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(found)
}

/// Why a dump whose first code has the time `first` cannot belong to the recorded process; `None` if it can. Most often
/// the first time is sufficient to decide.
fn of_another_run(
    dump: &mut DumpFile<SourceFile>,
    quirks: Quirks,
    times: Translation,
    first: u64,
    index: &RecordingIndex,
    source: &Source,
) -> io::Result<Option<OtherRun>> {
    if times.apply(first) > index.last_sample.saturating_add(APART) {
        return Ok(Some(OtherRun::Later));
    }
    let began = index.processes.from(source.space);
    let in_time = |time| times.apply(time).saturating_add(APART) >= began;
    let is_before = first_load(dump, quirks, in_time)?.is_none();
    Ok(is_before.then_some(OtherRun::Earlier))
}

/// The conversion of a dump's times to the recording's; `None` if there is none.
fn translation(
    header: &Header,
    quirks: Quirks,
    first_load: Option<u64>,
    clock: &RecordingClock,
    source: &Source,
    warnings: &mut Vec<Warning>,
) -> Option<Translation> {
    let times = DumpTimes {
        records: quirks.record_clock,
        header_clock: quirks.header_clock,
        header: header.timestamp,
        first_load,
    };
    let path = source.path.clone();
    match clock.translate(&times, source.marker) {
        Ok(translation) => {
            if translation.offset != 0 {
                let offset = translation.offset;
                warnings.push(Warning::ClockMoved { path, offset });
            } else if !clock.monotonic && times.records != RecordClock::Arch {
                warnings.push(Warning::ClocksDiffer { path });
            }
            Some(translation)
        }
        Err(cause) => {
            warnings.push(Warning::ClockUnknown { path, cause });
            None
        }
    }
}

/// The machine of a recording, from its header.
fn recorded_on(features: &Features) -> Target {
    /// `HEADER_ARCH` of perf: a length and the name that `uname -m` gives.
    const ARCH: u8 = 6;
    const MACHINES: [(&[u8], u16, Endian); 8] = [
        (b"x86_64", 62, Endian::Little),
        (b"aarch64", 183, Endian::Little),
        (b"i686", 3, Endian::Little),
        (b"armv7l", 40, Endian::Little),
        (b"riscv64", 243, Endian::Little),
        (b"ppc64le", 21, Endian::Little),
        (b"s390x", 22, Endian::Big),
        (b"loongarch64", 258, Endian::Little),
    ];
    let name = features.get(ARCH).and_then(|bytes| bytes.get(4..)).unwrap_or_default();
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let known = MACHINES.iter().find(|(known, ..)| *known == name).unwrap_or(&MACHINES[0]);
    Target::new(known.1, known.2)
}

/// Whether a line of a perf map is V8's bytecode of an interpreted function, which is no code: V8 lists it behind the function's own copy of the interpreter's entry, with the same name
/// (`JS:~f a.js:1:1`). Beside V8's jitdump, which does not have it, it would only need images.
fn is_bytecode(last: &[u8], name: &[u8]) -> bool {
    let colon = name.iter().position(|byte| *byte == b':');
    let mark = colon.and_then(|colon| name.get(colon + 1..));
    last == name && mark.is_some_and(|mark| mark.starts_with(b"~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_of_two_lines_of_an_interpreted_function_is_bytecode() {
        let lines = ["JS:~f a.js:1:1", "JS:~f a.js:1:1", "JS:~g a.js:2:1", "JS:*g a.js:2:1"];
        let pairs =
            lines.windows(2).map(|pair| is_bytecode(pair[0].as_bytes(), pair[1].as_bytes()));
        assert_eq!(pairs.collect::<Vec<_>>(), [true, false, false]);
        // Compiled again, or of another runtime.
        for name in ["JS:*f a.js:1:1", "LazyCompile:f", "f", "operator~"] {
            assert!(!is_bytecode(name.as_bytes(), name.as_bytes()), "{name}");
        }
    }
}
