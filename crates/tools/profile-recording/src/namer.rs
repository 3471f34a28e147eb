//! The frames at addresses of files and of the kernel.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use jitscribe_inject::Recording;
use jitscribe_inject::jitted_function::line_of_trace;
use profile::{
    Builder, Frame, FrameId, FunctionKind, Missing, ModuleId, ModuleKind, Position, StackId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use tempfile::TempDir;

use crate::bpf::BpfPrograms;
use crate::codes::{Codes, Symbol};
use crate::functions::{named, native};
use crate::kernel::Kernel;
use crate::modules::{InFile, Modules};
use crate::options::Options;
use crate::recorded_code::RecordedCode;
use crate::recorded_profile::RecordedProfile;
use crate::source_users::SourceUsers;
use crate::threads::Threads;

/// Names addresses, each of them once.
#[derive(Debug)]
pub struct Namer<'f> {
    pub builder: Builder,
    pub modules: Modules<'f>,
    module_ids: FxHashMap<usize, ModuleId>,
    kernel: Kernel,
    bpf: BpfPrograms,
    codes: Codes,
    with_lines: bool,
    /// The folders with sources that the user named.
    source_folders: Vec<PathBuf>,
    /// By module and address in it.
    in_files: FxHashMap<(usize, u64), FramesAt>,
    in_kernel: FxHashMap<u64, FramesAt>,
    frames: Vec<FrameId>,
    /// Modules with sampled code that has no name.
    unnamed: FxHashSet<usize>,
}

/// The frames at an address, as a part of [`Namer::frames`]: the outermost first.
#[derive(Clone, Debug)]
pub struct FramesAt {
    place: Range<usize>,
    /// The file that they are in.
    pub module: Option<usize>,
}

impl<'f> Namer<'f> {
    /// Nothing is named yet.
    pub fn new(recording: &Recording, options: &Options<'f>) -> Self {
        Self {
            builder: Builder::new(),
            modules: Modules::new(recording, options.files),
            module_ids: FxHashMap::default(),
            kernel: Kernel::of(recording),
            bpf: BpfPrograms::of(recording.reader()),
            codes: Codes::default(),
            with_lines: options.lines,
            source_folders: options.sources.folders.clone(),
            in_files: FxHashMap::default(),
            in_kernel: FxHashMap::default(),
            frames: Vec::new(),
            unnamed: FxHashSet::default(),
        }
    }

    /// The number of the file at `path`, which was mapped with this build-id, if that is known.
    pub fn module(&mut self, path: &[u8], build_id: Option<&[u8]>) -> usize {
        self.modules.number(path, build_id)
    }

    /// The stack on top of `stack` that ends with these frames.
    pub fn push(&mut self, stack: Option<StackId>, frames: &FramesAt) -> Option<StackId> {
        let frames = self.frames.get(frames.place.clone()).unwrap_or_default();
        frames.iter().fold(stack, |stack, &frame| Some(self.builder.stack(stack, frame)))
    }

    /// The bottom of a stack that ends too early.
    pub fn end(&mut self, why: &[u8]) -> StackId {
        self.single(why, FunctionKind::End)
    }

    /// The stack of a sample without any address.
    pub fn unknown_stack(&mut self) -> StackId {
        self.single(b"[unknown]", FunctionKind::Unknown)
    }

    fn single(&mut self, name: &[u8], kind: FunctionKind) -> StackId {
        let function = named(&mut self.builder, name, kind);
        let frame = self.builder.frame(Frame::new(function));
        self.builder.stack(None, frame)
    }

    /// The frame of an address of which no more is known than this name.
    pub fn unknown(&mut self, name: &[u8], address: u64) -> FramesAt {
        let function = named(&mut self.builder, name, FunctionKind::Unknown);
        let mut frame = Frame::new(function);
        frame.address = address;
        let frame = self.builder.frame(frame);
        self.store(None, [frame])
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

    /// The frame of an address of the kernel.
    pub fn in_kernel(&mut self, address: u64) -> FramesAt {
        if let Some(known) = self.in_kernel.get(&address) {
            return known.clone();
        }
        let found = self.kernel.at(address);
        let path = found.map(|found| found.module).filter(|module| !module.is_empty());
        let path = self.builder.string(path.unwrap_or("[kernel.kallsyms]").as_bytes());
        let module = profile::Module { kind: ModuleKind::Kernel, path, build_id: Vec::new() };
        let module = self.builder.module(module);
        let name = found.map_or("[kernel]", |found| found.name);
        let program = found.and_then(|found| self.bpf.find(found.start, found.name));
        let code = program.and_then(|number| {
            self.codes.of_program(&mut self.builder, &self.bpf, number, name, module)
        });
        let function = match code {
            Some((_, function)) => function,
            None => named(&mut self.builder, name.as_bytes(), FunctionKind::Kernel),
        };
        let mut frame = Frame::new(function);
        frame.code = code.map(|(code, _)| code);
        (frame.module, frame.address) = (Some(module), address);
        let line = program.and_then(|number| self.bpf.get(number)?.line_at(address));
        let frame = match line.filter(|_| self.with_lines) {
            Some(line) => {
                let file = self.builder.string(&line.file);
                let position = Position { file, line: line.line, column: line.column };
                self.builder.frame_at(frame, position)
            }
            None => self.builder.frame(frame),
        };
        let frames = self.store(None, [frame]);
        self.in_kernel.insert(address, frames.clone());
        frames
    }

    /// The frames at a place in a file; `None` if there is no such file.
    pub fn in_file(&mut self, place: InFile, threads: &Threads) -> Option<FramesAt> {
        let address = self.modules.get(place.module)?.address(place.offset);
        let key = (place.module, address);
        if let Some(known) = self.in_files.get(&key) {
            return Some(known.clone());
        }
        self.codes.read_names(place.module, &self.modules);
        let symbol = Symbol::at(self.modules.get(place.module)?, place, address);
        let frames = match symbol {
            Some(symbol) => self.in_code(symbol, threads),
            None => vec![self.without_symbol(place.module, address)?],
        };
        let frames = self.store(Some(place.module), frames);
        self.in_files.insert(key, frames.clone());
        Some(frames)
    }

    fn without_symbol(&mut self, number: usize, address: u64) -> Option<FrameId> {
        self.unnamed.insert(number);
        let id = self.module_id(number);
        let name = match self.modules.get(number)?.name() {
            name if name.starts_with(b"[") => name.to_vec(),
            name => [b"[", name, b"]"].concat(),
        };
        let function = named(&mut self.builder, &name, FunctionKind::Unknown);
        let mut frame = Frame::new(function);
        (frame.module, frame.address) = (id, address);
        Some(self.builder.frame(frame))
    }

    /// The frames at an address of a code, the outermost first.
    fn in_code(&mut self, symbol: Symbol, threads: &Threads) -> Vec<FrameId> {
        let listed = self.codes.listed(&self.modules, &symbol);
        let symbol = match listed {
            Some(listed) => self.codes.in_first_image(listed, symbol),
            None => symbol,
        };
        let id = self.module_id(symbol.module);
        let Some(module) = self.modules.get(symbol.module) else { return Vec::new() };
        let builder = &mut self.builder;
        let code = self.codes.code(builder, module, id, &symbol, listed, threads);
        let Some(function) = builder.code_row(code).map(|code| code.function) else {
            return Vec::new();
        };
        let lines = module.lines().filter(|_| self.with_lines);
        let mut known = lines.map(|lines| lines.frames(symbol.address)).unwrap_or_default();
        let outermost = known.pop().unwrap_or_default();
        let mut all = Vec::new();
        for (depth, line) in std::iter::once(&outermost).chain(known.iter().rev()).enumerate() {
            let function = match depth {
                0 => function,
                _ if symbol.is_in_image => self.codes.functions.of_inlined(builder, line, function),
                _ => native(builder, &line.function, FunctionKind::Native),
            };
            let mut frame = Frame::new(function);
            (frame.code, frame.module, frame.address) = (Some(code), id, symbol.address);
            frame.depth = u32::try_from(depth).unwrap_or(u32::MAX);
            let file = builder.string(&line.file);
            let is_without = self.with_lines && depth == 0 && symbol.is_in_image && line.line == 0;
            let first = if is_without { line_of_trace(&symbol.name) } else { 0 };
            let position = Position { file, line: line.line.max(first), column: line.column };
            all.push(builder.frame_at(frame, position));
        }
        all
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

    /// The profile and its code. `samples` counts the samples in each module; `end` is the time of the last sample, in nanoseconds since 1970.
    pub fn finish(
        mut self,
        threads: &Threads,
        samples: &FxHashMap<usize, u64>,
        end: Option<i64>,
        folder: Option<TempDir>,
    ) -> RecordedProfile<'f> {
        for unsampled in self.codes.unsampled(&self.modules) {
            let id = unsampled.place.and_then(|(image, _)| self.module_id(image));
            self.codes.add_unsampled(&mut self.builder, &unsampled, id, threads);
        }
        let mut missing: Vec<Missing> = Vec::new();
        for (number, module) in self.modules.iter() {
            let stripped = || {
                let text = "has no symbols, and no separate debug file for it was found";
                let is_unnamed = self.unnamed.contains(&number) && module.is_stripped();
                is_unnamed.then(|| text.to_owned())
            };
            if let Some(cause) = module.problem().map(str::to_owned).or_else(stripped) {
                let path = self.builder.string(&module.path);
                let samples = samples.get(&number).copied().unwrap_or(0);
                missing.push(Missing { path, cause, samples });
            }
        }
        missing.sort_by_key(|missing| std::cmp::Reverse(missing.samples));
        missing.into_iter().for_each(|missing| self.builder.missing(missing));
        let mut users = SourceUsers::new(&self.modules, |path| self.codes.user_of(path));
        let (places, functions, warnings) = self.codes.into_places();
        let code = RecordedCode::new(self.modules, self.bpf, (places, functions), end, folder);
        code.add_sources(&mut self.builder);
        let profile = self.builder.finish();
        let ids = self.module_ids.iter().map(|(&number, &id)| (id, number)).collect();
        users.add_functions(&profile, &ids);
        let code = code.showing(users, self.source_folders);
        RecordedProfile {
            code,
            profile,
            stacks: None,
            mapped_files: BTreeMap::new(),
            unusable: Vec::new(),
            warnings,
        }
    }
}
