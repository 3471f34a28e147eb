//! From the samples of a recording to the tables of a profile.
//!
//! Stacks are few where samples are many. So whole stacks are looked up first, then addresses, and each address of a file is named once. What is known of a
//! stack or an address holds for a span of time, in which nothing else was mapped at these addresses.

use std::ops::Range;
use std::path::Path;

use code_timeline::AddressSpaceId;
use jitscribe_inject::files::pid_of_jitted;
use jitscribe_inject::{
    Guesses, Progress, Recording, Result, SampleEvent, SampledMemory, StackCounter, StackSample,
    Stage,
};
use profile::{EventId, ProcessId, SampleRow, StackId, UNNAMED_CODE};
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use crate::modules::InFile;
use crate::namer::{FramesAt, Namer};
use crate::options::Options;
use crate::recorded_profile::RecordedProfile;
use crate::threads::Threads;
use crate::{about, ends};

/// Reads all samples. `path` is that of the recording as the user named it, `folder` has its images, if they were made for the profile.
pub fn read<'f>(
    path: &Path,
    recording: &mut Recording,
    folder: Option<TempDir>,
    options: &Options<'f>,
    progress: &dyn Fn(Progress),
) -> Result<RecordedProfile<'f>> {
    let mut reader = Reader::new(recording, options);
    let about = about::about(path, recording);
    let to_utc = about.to_utc;
    reader.namer.builder.about(about);
    progress(Progress::Begins(Stage::Attributing));
    let tick = |at| progress(Progress::At(at));
    let mut counter = options.count_stacks.then(|| StackCounter::new(recording));
    let guesses = match counter {
        Some(_) => Guesses::Both,
        None => Guesses::One(options.guess),
    };
    recording.each_sample(options.files, guesses, &tick, &mut |memory, event| match event {
        SampleEvent::Sample(sample) => {
            reader.sample(memory, &sample);
            if let Some(counter) = &mut counter {
                counter.add(memory, &sample);
            }
        }
        SampleEvent::Comm(comm) => reader.threads.name(&mut reader.namer.builder, &comm),
        SampleEvent::Fork(task) => reader.threads.begin(&task),
        _ => {}
    })?;
    let last = i64::try_from(reader.last).unwrap_or(i64::MAX);
    let end = to_utc.map(|to_utc| to_utc.saturating_add(last));
    let mut recorded = reader.namer.finish(&reader.threads, &reader.samples, end, folder);
    recorded.stacks = counter.and_then(StackCounter::finish);
    let pids = recorded.profile.processes().iter().map(|process| process.pid).take(PROCESSES);
    recorded.mapped_files = pids.map(|pid| (pid, recording.mapped_files(pid))).collect();
    Ok(recorded)
}

/// Number of processes whose mapped files are listed.
const PROCESSES: usize = 64;

/// What a stack of a process becomes.
#[derive(Clone, Debug)]
struct KnownStack {
    times: Range<u64>,
    stack: StackId,
    /// The file of the innermost frame.
    module: Option<usize>,
}

/// What is at an address of a process.
#[derive(Clone, Debug)]
struct KnownAddress {
    times: Range<u64>,
    frames: FramesAt,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    id: EventId,
    /// The weight of samples without a period.
    weight: u64,
}

/// A sample, its process, and what is mapped in it.
struct Sampled<'s, 'm> {
    sample: &'s StackSample<'s>,
    process: ProcessId,
    memory: &'s mut SampledMemory<'m>,
}

struct Reader<'f> {
    namer: Namer<'f>,
    threads: Threads,
    events: Vec<Event>,
    stacks: FxHashMap<Box<[u64]>, KnownStack>,
    /// The current stack, as a key of `stacks`.
    key: Vec<u64>,
    addresses: FxHashMap<(Option<AddressSpaceId>, u64), KnownAddress>,
    /// By number of the name of a mapping.
    modules: FxHashMap<usize, usize>,
    /// By module: samples whose innermost frame is in it.
    samples: FxHashMap<usize, u64>,
    /// The time of the last sample.
    last: u64,
}

impl<'f> Reader<'f> {
    fn new(recording: &Recording, options: &Options<'f>) -> Self {
        let mut namer = Namer::new(recording, options);
        let events = recording.reader().attrs().list().iter().map(|attr| Event {
            id: namer.builder.event(attr.name().unwrap_or(b"samples")),
            weight: match attr.is_by_frequency() {
                true => 1,
                false => attr.sample_period.max(1),
            },
        });
        Self {
            events: events.collect(),
            namer,
            threads: Threads::of(recording),
            stacks: FxHashMap::default(),
            key: Vec::new(),
            addresses: FxHashMap::default(),
            modules: FxHashMap::default(),
            samples: FxHashMap::default(),
            last: 0,
        }
    }

    fn sample(&mut self, memory: &mut SampledMemory<'_>, sample: &StackSample<'_>) {
        let Some(&event) = self.events.get(sample.event) else { return };
        let builder = &mut self.namer.builder;
        let process = self.threads.process(builder, sample.space, sample.pid);
        let thread = self.threads.thread(builder, process, sample.tid);
        let known = self.stack(Sampled { sample, process, memory });
        if let Some(module) = known.module {
            let samples = self.samples.entry(module).or_insert(0);
            *samples = samples.saturating_add(1);
        }
        self.last = self.last.max(sample.time);
        self.namer.builder.sample(SampleRow {
            time: sample.time,
            thread,
            event: event.id,
            weight: sample.period.unwrap_or(event.weight),
            stack: known.stack,
        });
    }

    fn stack(&mut self, mut sampled: Sampled<'_, '_>) -> KnownStack {
        let sample = sampled.sample;
        let space = sample.space.map_or(u64::MAX, |space| space.index() as u64);
        self.key.clear();
        self.key.extend([space, ends::number_of(sample.end), sample.kernel.len() as u64]);
        self.key.extend_from_slice(sample.kernel);
        self.key.extend_from_slice(sample.user);
        if let Some(known) = self.stacks.get(&*self.key)
            && known.times.contains(&sample.time)
        {
            return known.clone();
        }
        let (mut times, mut module) = (0..u64::MAX, None);
        let end = ends::of_sample(sampled.memory, sample);
        let mut stack = end.map(|end| self.namer.end(&end));
        for &address in sample.user.iter().rev() {
            let known = self.address(&mut sampled, address);
            times = times.start.max(known.times.start)..times.end.min(known.times.end);
            stack = self.namer.push(stack, &known.frames);
            module = known.frames.module;
        }
        for &address in sample.kernel.iter().rev() {
            let frames = self.namer.in_kernel(address);
            stack = self.namer.push(stack, &frames);
            module = None;
        }
        let stack = stack.unwrap_or_else(|| self.namer.unknown_stack());
        let known = KnownStack { times, stack, module };
        self.stacks.insert(self.key.as_slice().into(), known.clone());
        known
    }

    fn address(&mut self, sampled: &mut Sampled<'_, '_>, address: u64) -> KnownAddress {
        let &mut Sampled { sample, process, ref mut memory } = sampled;
        let key = (sample.space, address);
        if let Some(known) = self.addresses.get(&key)
            && known.times.contains(&sample.time)
        {
            return known.clone();
        }
        let (mut times, mut frames) = (0..u64::MAX, None);
        if let Some(space) = sample.space {
            let at = memory.at(space, address, sample.time);
            times = at.times.clone();
            frames = match at.name {
                None => None,
                Some(_) if at.is_anonymous => Some(self.namer.unknown(UNNAMED_CODE, address)),
                Some(path) => {
                    let namer = &mut self.namer;
                    let module = self.modules.entry(at.name_number);
                    let module = *module.or_insert_with(|| namer.module(path, at.build_id));
                    let place = InFile { module, offset: at.offset, address, process };
                    if let Some(pid) = pid_of_jitted(path) {
                        self.threads.add_runtimes(&mut namer.builder, process, pid, &namer.modules);
                    }
                    self.namer.in_file(place, &self.threads)
                }
            };
        }
        let frames = frames.unwrap_or_else(|| self.namer.unknown(b"[unknown]", address));
        let known = KnownAddress { times, frames };
        self.addresses.insert(key, known.clone());
        known
    }
}
