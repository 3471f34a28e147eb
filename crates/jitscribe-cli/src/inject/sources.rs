//! Reads jitdumps and perf maps into the book of code.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;

use code_image::{Endian, Target};
use code_timeline::LifeId;
use dumped_code::endian;
use jitdump::{CodeEvent, DumpFile, Header, OpenError, Quirks};
use perf_data::Features;

use super::address_space::AddressSpaces;
use super::clock::{DumpTimes, RecordingClock, Translation};
use super::codes::{CodeBook, OpenDump};
use super::locate::Source;
use super::report::SourceReport;
use super::survey::Survey;
use crate::files::{Damage, Kind, open_regular, tell_end};

/// By how much clocks may disagree before a dump is taken for another run's. In nanoseconds.
const APART: u64 = 1_000_000_000;

/// The bytes of the perf maps; what is read from them borrows from here.
#[derive(Debug)]
pub struct Contents(Vec<Vec<u8>>);

impl Contents {
    /// Reads all perf maps: jitdumps, which are large, are read piece by piece where they are used.
    /// One that cannot be read stays empty and is named in `warnings`.
    pub fn read(sources: &[Source], warnings: &mut Vec<String>) -> Self {
        let read = |source: &Source| {
            let mut bytes = Vec::new();
            if source.kind == Kind::PerfMap {
                let done =
                    open_regular(&source.path).and_then(|mut file| file.read_to_end(&mut bytes));
                if let Err(error) = done {
                    warnings.push(format!("{}: {error}; it is left out", source.path.display()));
                }
            }
            bytes
        };
        Self(sources.iter().map(read).collect())
    }
}

/// All code, and for which machine each process's is.
#[derive(Debug)]
pub struct Sources<'a> {
    /// All code.
    pub book: CodeBook<'a>,
    /// What each file gave.
    pub reports: Vec<SourceReport>,
    /// For which machine each process's is.
    pub targets: Targets,
}

/// For which machine the code of each life is that has a dump.
#[derive(Debug, Default)]
pub struct Targets(BTreeMap<LifeId, Target>);

impl<'a> Sources<'a> {
    /// Reads all sources.
    pub fn of(
        sources: &[Source],
        contents: &'a Contents,
        survey: &Survey,
        spaces: &AddressSpaces,
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut all =
            Self { book: CodeBook::default(), reports: Vec::new(), targets: Targets::default() };
        for (source, bytes) in sources.iter().zip(&contents.0) {
            let (codes, clock_offset_ns) = match source.kind {
                Kind::Jitdump => all.add_dump(source, survey, warnings),
                Kind::PerfMap => (all.add_map(source, bytes, spaces, warnings), 0),
            };
            all.reports.push(SourceReport {
                path: source.path.clone(),
                kind: source.kind,
                pid: survey.processes.pid(source.life),
                codes,
                clock_offset_ns,
            });
        }
        all.book.finish(survey, spaces);
        all
    }

    fn add_dump(
        &mut self,
        source: &Source,
        survey: &Survey,
        warnings: &mut Vec<String>,
    ) -> (usize, i64) {
        let told = self.try_add_dump(source, survey, warnings);
        told.unwrap_or_else(|error| {
            warnings.push(format!("{}: {error}; it is left out", source.path.display()));
            (0, 0)
        })
    }

    fn try_add_dump(
        &mut self,
        source: &Source,
        survey: &Survey,
        warnings: &mut Vec<String>,
    ) -> Result<(usize, i64), OpenError> {
        let path = source.path.display();
        let file = open_regular(&source.path)?;
        let size = file.metadata()?.len();
        let mut dump = DumpFile::open(file, size)?;
        let header = *dump.header();
        let quirks = dump.quirks()?;
        let machine = u16::try_from(quirks.machine).unwrap_or(0);
        let target = Target::new(machine, endian(header.endian));
        self.targets.0.entry(source.life).or_insert(target);

        let first_load = first_load(&mut dump, quirks, |_| true)?;
        let times = translation(&header, quirks, first_load, &survey.clock, source, warnings);
        if let (Some(times), Some(first)) = (times, first_load)
            && let Some(why) = of_another_run(&mut dump, quirks, times, first, survey, source)?
        {
            warnings.push(format!("{path}: {why}: it is of another run, and left out"));
            return Ok((0, times.offset));
        }
        let time_of = |time| match times {
            Some(times) => times.apply(time),
            None => source.marker.unwrap_or(0),
        };
        let pid = survey.processes.pid(source.life);
        let header_pid = header.pid;
        // A forked child that goes on writing says its own pid. In a pid namespace the numbers mean
        // nothing here, but for the one that the marker translates.
        let life_of = |recorded: u32| {
            if recorded == header_pid || pid != header_pid {
                source.life
            } else {
                survey.processes.at(recorded, u64::MAX).unwrap_or(source.life)
            }
        };
        let parent_of = |life| survey.processes.parent(life).map(|(parent, _)| parent);
        let mut damage = Damage::default();
        let damaged = |error| damage.note(&error);
        self.book.expect(source.life, size);
        let dump = OpenDump { path: source.path.clone(), file: dump, quirks };
        let (count, outcome) = self.book.add_dump(dump, damaged, time_of, life_of, parent_of);
        damage.tell(&source.path, warnings);
        tell_end(&source.path, count, outcome, warnings);
        if count == 0 {
            warnings.push(format!("{path}: it tells of no code"));
        }
        Ok((count, times.map_or(0, |times| times.offset)))
    }

    fn add_map(
        &mut self,
        source: &Source,
        bytes: &'a [u8],
        spaces: &AddressSpaces,
        warnings: &mut Vec<String>,
    ) -> usize {
        let mut damage = Damage::default();
        let entries = perf_map::entries(bytes).filter_map(|entry| match entry {
            Ok(entry) => Some(entry),
            Err(error) => {
                damage.note(&error);
                None
            }
        });
        let files = spaces.files(source.life);
        let count = self.book.add_map(entries, source.life, files);
        damage.tell(&source.path, warnings);
        count
    }
}

impl Targets {
    /// For which machine the code of `life` is: as its dump says, else as the recording does.
    pub fn of(&self, survey: &Survey, life: LifeId, features: &Features) -> Target {
        let mut at = Some(life);
        while let Some(life) = at {
            if let Some(&target) = self.0.get(&life) {
                return target;
            }
            at = survey.processes.parent(life).map(|(parent, _)| parent).filter(|&p| p < life);
        }
        recorded_on(features)
    }
}

/// When the first code of a dump was told for whose time `wanted` holds, in the dump's own clock.
fn first_load(
    dump: &mut DumpFile<File>,
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

/// Why a dump whose first code was told at `first` cannot be of the recorded process, if so. Mostly
/// the first time says that it can.
fn of_another_run(
    dump: &mut DumpFile<File>,
    quirks: Quirks,
    times: Translation,
    first: u64,
    survey: &Survey,
    source: &Source,
) -> io::Result<Option<&'static str>> {
    if times.apply(first) > survey.last_sample.saturating_add(APART) {
        return Ok(Some("all of its code was made after the recording ended"));
    }
    let began = survey.processes.from(source.life);
    let in_time = |told| times.apply(told).saturating_add(APART) >= began;
    let is_before = first_load(dump, quirks, in_time)?.is_none();
    Ok(is_before.then_some("all of its code was made before the process began"))
}

/// How a dump's times become the recording's; `None` if they cannot.
fn translation(
    header: &Header,
    quirks: Quirks,
    first_load: Option<u64>,
    clock: &RecordingClock,
    source: &Source,
    warnings: &mut Vec<String>,
) -> Option<Translation> {
    let times = DumpTimes {
        records: quirks.record_clock,
        header_clock: quirks.header_clock,
        header: header.timestamp,
        first_load,
    };
    let path = source.path.display();
    match clock.translate(&times, source.marker) {
        Ok(translation) => {
            if translation.offset != 0 {
                let milliseconds = translation.offset as f64 / 1e6;
                warnings.push(format!(
                    "{path}: the recording was not made with -k mono; the dump's times are moved \
                     by {milliseconds:.3} ms to fit it"
                ));
            } else if !clock.monotonic {
                warnings.push(format!(
                    "{path}: the recording was not made with -k mono, and nothing says how its \
                     clock differs from the dump's; code that was replaced soon may be misnamed"
                ));
            }
            Some(translation)
        }
        Err(error) => {
            warnings.push(format!("{path}: {error}"));
            None
        }
    }
}

/// The machine that a recording was made on, as its header says.
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
