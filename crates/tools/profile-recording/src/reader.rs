//! From the samples of a recording to the tables of a profile.
//!
//! Stacks are few where samples are many. So whole stacks are looked up first, then addresses, and each address of a file is named once. What is known of a
//! stack or an address holds for a span of time, in which nothing else was mapped at these addresses.

use std::ops::Range;
use std::path::Path;

use code_timeline::AddressSpaceId;
use jitscribe_inject::{
    Progress, Recording, Result, SampleEvent, SampledMemory, StackEnd, StackSample, Stage,
};
use profile::{
    Builder, Code, CodeId, EventId, Frame, FrameId, FunctionId, FunctionKind, Missing, ModuleId,
    ModuleKind, ProcessId, Profile, SampleRow, StackId, StringId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use tempfile::TempDir;

use crate::code_lists::{CodeLists, ListedCode, pid_of_image};
use crate::functions::{JittedFunctions, JittedName, named, native};
use crate::kernel::Kernel;
use crate::modules::Modules;
use crate::options::Options;
use crate::recorded_code::{CodePlace, RecordedCode};
use crate::threads::Threads;
use crate::{about, ends};

/// Reads all samples. `path` is that of the recording as the user named it, `folder` has its images, if they were made for the profile.
pub fn read<'f>(
    path: &Path,
    recording: &mut Recording,
    folder: Option<TempDir>,
    options: &Options<'f>,
    progress: &dyn Fn(Progress),
) -> Result<(Profile, RecordedCode<'f>)> {
    let mut reader = Reader::new(recording, options);
    reader.builder.about(about::about(path, recording));
    progress(Progress::Begins(Stage::Attributing));
    let tick = |at| progress(Progress::At(at));
    recording.each_sample(
        options.files,
        options.guess,
        &tick,
        &mut |memory, event| match event {
            SampleEvent::Sample(sample) => reader.sample(memory, &sample),
            SampleEvent::Comm(comm) => reader.threads.name(&mut reader.builder, &comm),
            SampleEvent::Fork(task) => reader.threads.begin(&task),
            _ => {}
        },
    )?;
    Ok(reader.finish(folder))
}

/// What a stack of a process becomes.
#[derive(Clone, Debug)]
struct KnownStack {
    times: Range<u64>,
    stack: StackId,
    /// The file of the innermost frame.
    module: Option<usize>,
}

/// The frames at an address, as a part of [`Reader::frames`]: the outermost first.
#[derive(Clone, Debug)]
struct FramesAt {
    place: Range<usize>,
    module: Option<usize>,
}

/// What is at an address of a process.
#[derive(Clone, Debug)]
struct KnownAddress {
    times: Range<u64>,
    frames: FramesAt,
}

struct Reader<'f> {
    builder: Builder,
    threads: Threads,
    modules: Modules<'f>,
    kernel: Kernel,
    jitted: JittedFunctions,
    /// How many modules' functions are in `jitted`.
    counted: usize,
    lines: bool,
    events: Vec<Event>,
    stacks: FxHashMap<Box<[u64]>, KnownStack>,
    /// The current stack, as a key of `stacks`.
    key: Vec<u64>,
    addresses: FxHashMap<(Option<AddressSpaceId>, u64), KnownAddress>,
    in_modules: FxHashMap<(usize, u64), FramesAt>,
    in_kernel: FxHashMap<u64, FramesAt>,
    frames: Vec<FrameId>,
    codes: FxHashMap<(usize, u64), CodeId>,
    /// The compilations that the lists beside the images have, and where each was seen first: several images may have it.
    lists: CodeLists,
    first_places: FxHashMap<usize, (usize, u64)>,
    places: Vec<CodePlace>,
    module_of_name: FxHashMap<usize, usize>,
    module_ids: FxHashMap<usize, ModuleId>,
    /// By module: samples whose innermost frame is in it, and whether there is code without a name.
    samples: FxHashMap<usize, u64>,
    unnamed: FxHashMap<usize, bool>,
    /// The jitted functions of which a code was sampled.
    sampled: FxHashSet<FunctionId>,
    last: u64,
    to_utc: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    id: EventId,
    /// The weight of samples without a period.
    weight: u64,
}

impl<'f> Reader<'f> {
    fn new(recording: &Recording, options: &Options<'f>) -> Self {
        let mut builder = Builder::new();
        let events = recording.reader().attrs().list().iter().map(|attr| Event {
            id: builder.event(attr.name().unwrap_or(b"samples")),
            weight: match attr.is_by_frequency() {
                true => 1,
                false => attr.sample_period.max(1),
            },
        });
        let events = events.collect();
        Self {
            builder,
            threads: Threads::of(recording),
            modules: Modules::new(recording, options.files),
            kernel: Kernel::of(recording),
            jitted: JittedFunctions::default(),
            counted: 0,
            lines: options.lines,
            events,
            stacks: FxHashMap::default(),
            key: Vec::new(),
            addresses: FxHashMap::default(),
            in_modules: FxHashMap::default(),
            in_kernel: FxHashMap::default(),
            frames: Vec::new(),
            codes: FxHashMap::default(),
            lists: CodeLists::default(),
            first_places: FxHashMap::default(),
            places: Vec::new(),
            module_of_name: FxHashMap::default(),
            module_ids: FxHashMap::default(),
            samples: FxHashMap::default(),
            unnamed: FxHashMap::default(),
            sampled: FxHashSet::default(),
            last: 0,
            to_utc: about::about(Path::new(""), recording).to_utc,
        }
    }

    fn sample(&mut self, memory: &mut SampledMemory<'_>, sample: &StackSample<'_>) {
        let Some(&event) = self.events.get(sample.event) else { return };
        let process = self.threads.process(&mut self.builder, sample.space, sample.pid);
        let thread = self.threads.thread(&mut self.builder, process, sample.tid);
        let known = self.stack(memory, sample, process);
        if let Some(module) = known.module {
            let samples = self.samples.entry(module).or_insert(0);
            *samples = samples.saturating_add(1);
        }
        self.last = self.last.max(sample.time);
        self.builder.sample(SampleRow {
            time: sample.time,
            thread,
            event: event.id,
            weight: sample.period.unwrap_or(event.weight),
            stack: known.stack,
        });
    }

    fn stack(
        &mut self,
        memory: &mut SampledMemory<'_>,
        sample: &StackSample<'_>,
        process: ProcessId,
    ) -> KnownStack {
        let space = sample.space.map_or(u64::MAX, |space| space.index() as u64);
        self.key.clear();
        self.key.extend([space, number_of(sample.end), sample.kernel.len() as u64]);
        self.key.extend_from_slice(sample.kernel);
        self.key.extend_from_slice(sample.user);
        if let Some(known) = self.stacks.get(&*self.key)
            && known.times.contains(&sample.time)
        {
            return known.clone();
        }
        let known = self.new_stack(memory, sample, process);
        self.stacks.insert(self.key.as_slice().into(), known.clone());
        known
    }

    fn new_stack(
        &mut self,
        memory: &mut SampledMemory<'_>,
        sample: &StackSample<'_>,
        process: ProcessId,
    ) -> KnownStack {
        let mut times = 0..u64::MAX;
        let mut stack = None;
        let mut module = None;
        if let Some(name) = end_of(memory, sample) {
            let function = named(&mut self.builder, &name, FunctionKind::End);
            let frame = self.builder.frame(Frame::new(function));
            stack = Some(self.builder.stack(None, frame));
        }
        for &address in sample.user.iter().rev() {
            let known = self.address(memory, sample, address, process);
            times = times.start.max(known.times.start)..times.end.min(known.times.end);
            stack = self.push(stack, &known.frames);
            module = known.frames.module;
        }
        for &address in sample.kernel.iter().rev() {
            let frames = self.kernel_address(address);
            stack = self.push(stack, &frames);
            module = None;
        }
        let stack = stack.unwrap_or_else(|| {
            let function = named(&mut self.builder, b"[unknown]", FunctionKind::Unknown);
            let frame = self.builder.frame(Frame::new(function));
            self.builder.stack(None, frame)
        });
        KnownStack { times, stack, module }
    }

    fn push(&mut self, mut stack: Option<StackId>, frames: &FramesAt) -> Option<StackId> {
        for &frame in self.frames.get(frames.place.clone()).unwrap_or_default() {
            stack = Some(self.builder.stack(stack, frame));
        }
        stack
    }

    /// Stores the frames at an address, the outermost first.
    fn store(
        &mut self,
        module: Option<usize>,
        frames: impl IntoIterator<Item = FrameId>,
    ) -> FramesAt {
        let start = self.frames.len();
        self.frames.extend(frames);
        FramesAt { place: start..self.frames.len(), module }
    }

    fn kernel_address(&mut self, address: u64) -> FramesAt {
        if let Some(known) = self.in_kernel.get(&address) {
            return known.clone();
        }
        let found = self.kernel.at(address);
        let path = found.map(|found| found.module).filter(|module| !module.is_empty());
        let path = self.builder.string(path.unwrap_or("[kernel.kallsyms]").as_bytes());
        let module = profile::Module { kind: ModuleKind::Kernel, path, build_id: Vec::new() };
        let module = self.builder.module(module);
        let name = found.map_or("[kernel]", |found| found.name);
        let function = named(&mut self.builder, name.as_bytes(), FunctionKind::Kernel);
        let mut frame = Frame::new(function);
        (frame.module, frame.address) = (Some(module), address);
        let frame = self.builder.frame(frame);
        let frames = self.store(None, [frame]);
        self.in_kernel.insert(address, frames.clone());
        frames
    }

    fn address(
        &mut self,
        memory: &mut SampledMemory<'_>,
        sample: &StackSample<'_>,
        address: u64,
        process: ProcessId,
    ) -> KnownAddress {
        let key = (sample.space, address);
        if let Some(known) = self.addresses.get(&key)
            && known.times.contains(&sample.time)
        {
            return known.clone();
        }
        let known = self.new_address(memory, sample, address, process);
        self.addresses.insert(key, known.clone());
        known
    }

    fn new_address(
        &mut self,
        memory: &mut SampledMemory<'_>,
        sample: &StackSample<'_>,
        address: u64,
        process: ProcessId,
    ) -> KnownAddress {
        let Some(space) = sample.space else {
            let frames = self.unknown(b"[unknown]", address);
            return KnownAddress { times: 0..u64::MAX, frames };
        };
        let at = memory.at(space, address, sample.time);
        let frames = match at.name {
            None => self.unknown(b"[unknown]", address),
            Some(_) if at.is_anonymous => self.unknown(b"[jit code]", address),
            Some(path) => {
                let module = match self.module_of_name.get(&at.name_number) {
                    Some(&module) => module,
                    None => {
                        let module = self.modules.number(path, at.build_id);
                        self.module_of_name.insert(at.name_number, module);
                        module
                    }
                };
                self.in_module(module, at.offset, address, process)
            }
        };
        KnownAddress { times: at.times.clone(), frames }
    }

    fn unknown(&mut self, name: &[u8], address: u64) -> FramesAt {
        let function = named(&mut self.builder, name, FunctionKind::Unknown);
        let mut frame = Frame::new(function);
        frame.address = address;
        let frame = self.builder.frame(frame);
        self.store(None, [frame])
    }

    /// The frames at an offset in a file, which is mapped at `in_process`.
    fn in_module(
        &mut self,
        number: usize,
        offset: u64,
        in_process: u64,
        process: ProcessId,
    ) -> FramesAt {
        let Some(module) = self.modules.get(number) else {
            return self.unknown(b"[unknown]", in_process);
        };
        let address = module.address(offset);
        let key = (number, address);
        if let Some(known) = self.in_modules.get(&key) {
            return known.clone();
        }
        let id = self.module_id(number);
        let frames = self.name_address(number, id, address, in_process, process);
        let frames = self.store(Some(number), frames);
        self.in_modules.insert(key, frames.clone());
        frames
    }

    fn module_id(&mut self, number: usize) -> Option<ModuleId> {
        if let Some(&id) = self.module_ids.get(&number) {
            return Some(id);
        }
        let module = self.modules.get(number)?;
        let path = self.builder.string(&module.path);
        let build_id = module.build_id().to_vec();
        let id = self.builder.module(profile::Module { kind: module.kind, path, build_id });
        self.module_ids.insert(number, id);
        Some(id)
    }

    /// The frames at an address of a file, the outermost first.
    fn name_address(
        &mut self,
        number: usize,
        id: Option<ModuleId>,
        address: u64,
        in_process: u64,
        process: ProcessId,
    ) -> Vec<FrameId> {
        self.name_in(number, id, address, in_process, process, true)
    }

    /// The same. A code in several images is described by the first of them, if this `is_first_try`.
    fn name_in(
        &mut self,
        number: usize,
        id: Option<ModuleId>,
        address: u64,
        in_process: u64,
        process: ProcessId,
        is_first_try: bool,
    ) -> Vec<FrameId> {
        self.count_functions(number);
        let Some(module) = self.modules.get(number) else { return Vec::new() };
        let builder = &mut self.builder;
        let Some(symbol) = module.symbol(address) else {
            self.unnamed.insert(number, true);
            let name = match module.name() {
                name if name.starts_with(b"[") => name.to_vec(),
                name => [b"[", name, b"]"].concat(),
            };
            let mut frame = Frame::new(named(builder, &name, FunctionKind::Unknown));
            (frame.module, frame.address) = (id, address);
            return vec![builder.frame(frame)];
        };
        let is_image = module.kind == ModuleKind::Image;
        let listed = match is_image {
            true => self.lists.at(&module.path, symbol.range.start),
            false => None,
        };
        // Of a code that is partly hidden, the symbol begins later.
        let listed = listed.filter(|&(_, start)| start == symbol.range.start);
        if let Some((listed, start)) = listed.filter(|_| is_first_try) {
            let &mut (first, first_start) =
                self.first_places.entry(listed).or_insert((number, start));
            if (first, first_start) != (number, start) {
                let address = address.wrapping_sub(start).wrapping_add(first_start);
                let id = self.module_id(first);
                return self.name_in(first, id, address, in_process, process, false);
            }
        }
        let code = match self.codes.get(&(number, symbol.range.start)) {
            Some(&code) => code,
            None => {
                let (function, tier) = match is_image {
                    true => {
                        let name = JittedName::of(&symbol.name);
                        (self.jitted.of_code(builder, &name), name.tier.to_vec())
                    }
                    false => (native(builder, &symbol.name, FunctionKind::Native), Vec::new()),
                };
                let size = symbol.range.end.saturating_sub(symbol.range.start);
                let mut code = Code::new(function, size);
                code.symbol = builder.string(&symbol.name);
                code.tier = builder.string(&tier);
                code.module = id;
                code.module_address = symbol.range.start;
                if is_image {
                    code.process = Some(process);
                    let into = address.saturating_sub(symbol.range.start);
                    code.address = in_process.saturating_sub(into);
                    let pid = pid_of_image(&module.path);
                    code.process = pid.and_then(|pid| self.threads.with_pid(pid)).or(code.process);
                    if let Some(listed) = listed.and_then(|(number, _)| self.lists.get(number)) {
                        describe(builder, &mut code, listed);
                    }
                    self.sampled.insert(function);
                }
                let row = builder.function_row(function);
                let name = row.map_or(StringId::EMPTY, |row| row.name);
                let place = CodePlace {
                    module: number,
                    range: symbol.range.clone(),
                    function: builder.text(name).to_vec(),
                };
                self.places.push(place);
                let code = builder.code(code);
                self.codes.insert((number, symbol.range.start), code);
                code
            }
        };
        let Some(function) = builder.code_row(code).map(|code| code.function) else {
            return Vec::new();
        };
        let lines = module.lines().filter(|_| self.lines);
        let mut known = lines.map(|lines| lines.frames(address)).unwrap_or_default();
        let outermost = known.pop().unwrap_or_default();
        let mut all = Vec::new();
        for (depth, line) in std::iter::once(&outermost).chain(known.iter().rev()).enumerate() {
            let function = match (depth, is_image) {
                (0, _) => function,
                (_, true) => self.jitted.of_inlined(builder, line, function),
                (_, false) => native(builder, &line.function, FunctionKind::Native),
            };
            let mut frame = Frame::new(function);
            (frame.code, frame.module, frame.address) = (Some(code), id, address);
            frame.depth = u32::try_from(depth).unwrap_or(u32::MAX);
            (frame.line, frame.column) = (line.line, line.column);
            all.push(builder.frame(frame));
        }
        all
    }

    /// Reads the names of all functions of an image, before the first of them is named.
    fn count_functions(&mut self, number: usize) {
        let Self { modules, jitted, counted, lists, .. } = self;
        while *counted <= number {
            let module = modules.get(*counted).filter(|module| module.kind == ModuleKind::Image);
            if let Some(module) = module {
                lists.read_for(&module.path, modules.files());
                module.each_name(|name| jitted.add(name));
            }
            *counted = counted.saturating_add(1);
        }
    }

    /// Adds the compilations of sampled functions that were not sampled themselves.
    fn add_unsampled(&mut self) {
        let lists = std::mem::take(&mut self.lists);
        for (number, listed) in lists.iter() {
            if self.first_places.contains_key(&number) {
                continue;
            }
            let Some(process) = self.threads.with_pid(listed.pid) else { continue };
            let place = listed.images.iter().find_map(|(image, address)| {
                let number = self.modules.beside(image.as_bytes())?;
                Some((number, *address))
            });
            let module = place.and_then(|(number, _)| self.module_id(number));
            let builder = &mut self.builder;
            let name = JittedName::of(listed.symbol.as_bytes());
            let function = self.jitted.of_code(builder, &name);
            if !self.sampled.contains(&function) {
                continue;
            }
            let mut code = Code::new(function, listed.size);
            code.symbol = builder.string(listed.symbol.as_bytes());
            code.tier = builder.string(name.tier);
            code.process = Some(process);
            code.address = listed.address;
            describe(builder, &mut code, listed);
            let row = builder.function_row(function);
            let name = row.map_or(StringId::EMPTY, |row| row.name);
            let (number, start) = place.unwrap_or((usize::MAX, 0));
            (code.module, code.module_address) = (module, start);
            let range = start..start.saturating_add(listed.size);
            let function = builder.text(name).to_vec();
            self.places.push(CodePlace { module: number, range, function });
            builder.code(code);
        }
    }

    fn finish(mut self, folder: Option<TempDir>) -> (Profile, RecordedCode<'f>) {
        self.add_unsampled();
        let mut missing: Vec<Missing> = Vec::new();
        for (number, module) in self.modules.iter() {
            let is_unnamed = self.unnamed.contains_key(&number);
            let stripped = || {
                let text = "has no symbols, and no separate debug file for it was found";
                (is_unnamed && module.is_stripped()).then(|| text.to_owned())
            };
            let cause = module.problem().map(str::to_owned).or_else(stripped);
            if let Some(cause) = cause {
                let path = self.builder.string(&module.path);
                let samples = self.samples.get(&number).copied().unwrap_or(0);
                missing.push(Missing { path, cause, samples });
            }
        }
        missing.sort_by_key(|missing| std::cmp::Reverse(missing.samples));
        missing.into_iter().for_each(|missing| self.builder.missing(missing));
        let last = i64::try_from(self.last).unwrap_or(i64::MAX);
        let end = self.to_utc.map(|to_utc| to_utc.saturating_add(last));
        let code = RecordedCode::new(self.modules, self.places, end, folder);
        (self.builder.finish(), code)
    }
}

/// What the list beside the images says of a code.
fn describe(builder: &mut Builder, code: &mut Code, listed: &ListedCode) {
    (code.loaded, code.gone) = (listed.loaded, listed.gone);
    if !listed.tier.is_empty() {
        code.tier = builder.string(listed.tier.as_bytes());
    }
}

/// Why the stack of a sample does not reach its bottom; `None` if it does, or has none.
fn end_of(memory: &mut SampledMemory<'_>, sample: &StackSample<'_>) -> Option<Vec<u8>> {
    let space = sample.space?;
    match sample.end {
        StackEnd::NotRecorded | StackEnd::Whole => None,
        StackEnd::Walked => {
            let &last = sample.user.last()?;
            let frames = sample.user.len().saturating_add(sample.kernel.len());
            (!memory.is_bottom(space, last, sample.time)).then(|| ends::of_walked(frames))
        }
        StackEnd::Ended(end) => Some(ends::of_copied(end, |address| {
            let at = memory.at(space, address, sample.time);
            let name = at.name.unwrap_or(b"unknown memory");
            jitscribe_inject::files::base_name(name).to_vec()
        })),
    }
}

/// A number for each end that has its own words.
fn number_of(end: StackEnd) -> u64 {
    use jitscribe_inject::End;
    let (number, address) = match end {
        StackEnd::NotRecorded => (0, 0),
        StackEnd::Walked => (1, 0),
        StackEnd::Whole => (2, 0),
        StackEnd::Ended(end) => match end {
            End::BehindCopy { .. } => (3, 0),
            End::NoFile { .. } => (4, 0),
            End::NoTables { address } => (5, address),
            End::NoFramePointer | End::BadFramePointer => (6, 0),
            End::OtherMemory { .. } => (7, 0),
            End::NoReturnAddress => (8, 0),
            End::TooMany => (9, 0),
            _ => (10, 0),
        },
    };
    address.rotate_left(4) ^ number
}
