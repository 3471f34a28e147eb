//! Mappings: files with code, and the jitted code of each process, which pprof and OTLP attribute addresses to.

use std::ops::Range;

use profile::{Frame, Module, ModuleId, ModuleKind, ProcessId, Profile, Selection, StackId};

/// What addresses are attributed to.
#[derive(Debug)]
pub struct Mappings {
    mappings: Vec<Mapping>,
    of_module: Vec<Option<u32>>,
    of_process: Vec<Option<u32>>,
}

/// A file with code, or the jitted code of a process.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The addresses in it, as locations have them.
    pub addresses: Range<u64>,
    /// Its path, or a description in brackets.
    pub name: Vec<u8>,
    /// Its GNU build-id; empty if it has none.
    pub build_id: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Module(ModuleId),
    Process(ProcessId),
}

/// A process's own addresses are those of no file.
fn origin(profile: &Profile, frame: &Frame) -> Option<Origin> {
    match frame.module {
        Some(module) => Some(Origin::Module(module)),
        None => profile.code(frame.code?).process.map(Origin::Process),
    }
}

impl Mappings {
    /// Of all frames. The recorded program comes first: pprof shows the name of the first one for all.
    pub fn of(profile: &Profile, selection: &Selection) -> Self {
        let mut mappings = Self {
            mappings: Vec::new(),
            of_module: vec![None; profile.modules().len()],
            of_process: vec![None; profile.processes().len()],
        };
        match program(profile, selection) {
            Some(module) => _ = mappings.number(profile, Origin::Module(module)),
            None => {
                mappings.mappings.extend(process_name(profile, selection).map(|name| Mapping {
                    addresses: 0..0,
                    name,
                    build_id: Vec::new(),
                }))
            }
        }
        for frame in profile.frames() {
            let Some(number) = origin(profile, frame).map(|it| mappings.number(profile, it)) else {
                continue;
            };
            let Some(mapping) = mappings.mappings.get_mut(number as usize) else { continue };
            let addresses = &mut mapping.addresses;
            addresses.end = addresses.end.max(frame.address.saturating_add(1));
            // Addresses in files are those of their symbols, as if the file was mapped at 0.
            let is_file = frame
                .module
                .is_some_and(|module| profile.module(module).kind != ModuleKind::Kernel);
            if !is_file && (addresses.start == 0 || frame.address < addresses.start) {
                addresses.start = frame.address;
            }
        }
        // Jitted code of a process that has no file: all of it, sampled or not.
        for code in profile.codes().iter().filter(|code| code.module.is_none()) {
            let of_process = code.process.and_then(|id| mappings.of_process.get(id.index()));
            let number = of_process.copied().flatten().map(|number| number as usize);
            if let Some(mapping) = number.and_then(|number| mappings.mappings.get_mut(number)) {
                let addresses = &mut mapping.addresses;
                addresses.start = addresses.start.min(code.address);
                addresses.end = addresses.end.max(code.address.saturating_add(code.size));
            }
        }
        mappings
    }

    fn number(&mut self, profile: &Profile, origin: Origin) -> u32 {
        let slot = match origin {
            Origin::Module(id) => self.of_module.get_mut(id.index()),
            Origin::Process(id) => self.of_process.get_mut(id.index()),
        };
        let next = u32::try_from(self.mappings.len()).unwrap_or(u32::MAX);
        let Some(slot) = slot else { return next };
        if let Some(number) = *slot {
            return number;
        }
        *slot = Some(next);
        let (name, build_id) = match origin {
            Origin::Module(id) => {
                let Module { path, build_id, .. } = profile.module(id);
                (profile.text(*path).to_vec(), build_id.clone())
            }
            Origin::Process(id) => {
                (format!("[jit {}]", profile.process(id).pid).into_bytes(), Vec::new())
            }
        };
        self.mappings.push(Mapping { addresses: 0..0, name, build_id });
        next
    }

    /// The place of a frame's mapping.
    pub fn of_frame(&self, profile: &Profile, frame: &Frame) -> Option<u32> {
        match origin(profile, frame)? {
            Origin::Module(id) => self.of_module.get(id.index()).copied().flatten(),
            Origin::Process(id) => self.of_process.get(id.index()).copied().flatten(),
        }
    }

    /// All mappings.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter()
    }
}

fn samples_by_stack(profile: &Profile, selection: &Selection) -> Vec<u64> {
    let mut counts = vec![0_u64; profile.stacks().len()];
    let mut add = |stack: StackId, count: u64| {
        if let Some(sum) = counts.get_mut(stack.index()) {
            *sum = sum.saturating_add(count);
        }
    };
    selection.of(profile).for_each(|sample| add(sample.stack, 1));
    for (place, stack) in profile.stacks().iter().enumerate().rev() {
        let count = counts.get(place).copied().unwrap_or(0);
        if let Some(sum) = stack.parent.and_then(|parent| counts.get_mut(parent.index())) {
            *sum = sum.saturating_add(count);
        }
    }
    counts
}

/// The program that was recorded: of the files that are no libraries the one that has the most samples in it, or in what it called.
fn program(profile: &Profile, selection: &Selection) -> Option<ModuleId> {
    let mut counts = vec![0_u64; profile.modules().len()];
    for (stack, samples) in profile.stacks().iter().zip(samples_by_stack(profile, selection)) {
        let module = profile.frame(stack.frame).module;
        // Where it was entered: what it calls itself counts once.
        let caller = stack.parent.and_then(|it| profile.frame(profile.stack(it).frame).module);
        if let Some(module) = module.filter(|_| module != caller)
            && let Some(count) = counts.get_mut(module.index())
        {
            *count = count.saturating_add(samples);
        }
    }
    let is_program = |module: &Module| {
        let path = profile.text(module.path);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_library = name.windows(3).any(|part| part == b".so");
        module.kind == ModuleKind::File && !is_library && !name.starts_with(b"[")
    };
    let modules = (0..).map(ModuleId).zip(profile.modules()).zip(counts);
    let programs = modules.filter(|((_, module), count)| *count > 0 && is_program(module));
    programs.max_by_key(|(_, count)| *count).map(|((id, _), _)| id)
}

/// The name of the process with the most samples.
fn process_name(profile: &Profile, selection: &Selection) -> Option<Vec<u8>> {
    let mut counts = vec![0_u64; profile.processes().len()];
    for sample in selection.of(profile) {
        let process = profile.thread(sample.thread).process;
        if let Some(count) = counts.get_mut(process.index()) {
            *count = count.saturating_add(1);
        }
    }
    let (process, count) =
        profile.processes().iter().zip(counts).max_by_key(|(_, count)| *count)?;
    (count > 0).then(|| profile.text(process.name).to_vec())
}
