//! Samples by what the runtime was doing.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::activity::{Activity, is_interpreter};
use crate::code::Code;
use crate::function::FunctionKind;
use crate::id::{StackId, ThreadId};
use crate::origin::ModuleKind;
use crate::profile::Profile;
use crate::sample::SampleRow;
use crate::stack::Frame;

/// The name of the function that stands for code without a known name in memory that no file backs.
pub const UNNAMED_CODE: &[u8] = b"[jit code]";

/// Samples by what was done, in processes with jitted code on the stack of a chosen sample. Each sample counts once: what the innermost frame
/// that is a known part of the runtime does, up to the first frame of jitted code. Where the stack says nothing, a thread that has one task does
/// that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Activities {
    /// All samples in processes with jitted code.
    pub samples: u64,
    /// In the kernel.
    pub kernel: u64,
    /// In the garbage collector, or in what it called.
    pub garbage_collector: u64,
    /// In the compiler, or in what it called.
    pub compiler: u64,
    /// In the interpreter itself.
    pub interpreter: u64,
    /// In compiled code.
    pub jitted: u64,
    /// In other native code.
    pub native: u64,
}

/// What was done during a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// The kernel ran.
    Kernel,
    /// Compiled code, or code without a name.
    Jitted,
    /// What jitted code called, or what is called from no known part of a runtime.
    Native,
    /// A part of a runtime that is known, or what it called.
    Runtime(Activity),
}

impl Work {
    /// Its name in reports and exports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Jitted => "jitted code",
            Self::Native => "other native code",
            Self::Runtime(Activity::GarbageCollector) => "garbage collector",
            Self::Runtime(Activity::Compiler) => "compiler",
            Self::Runtime(Activity::Interpreter) => "interpreter",
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Jitted,
        Self::Runtime(Activity::Interpreter),
        Self::Runtime(Activity::GarbageCollector),
        Self::Runtime(Activity::Compiler),
        Self::Kernel,
        Self::Native,
    ];
}

/// The name of samples in processes without jitted code, of which [`SampledWork`] knows nothing.
const WITHOUT_JITTED_CODE: &str = "processes without jitted code";

/// What was done during each of some samples.
#[derive(Clone, Debug, Default)]
pub struct SampledWork {
    /// By stack and thread: what was done, and the number of samples.
    all: FxHashMap<(StackId, ThreadId), (Option<Work>, u64)>,
}

impl SampledWork {
    /// Of these samples.
    #[must_use]
    pub fn of(profile: &Profile, samples: impl Iterator<Item = SampleRow>) -> Self {
        let mut counts: FxHashMap<(StackId, ThreadId), u64> = FxHashMap::default();
        for sample in samples {
            let count = counts.entry((sample.stack, sample.thread)).or_insert(0);
            *count = count.saturating_add(1);
        }
        let shown = StackWork::of(profile);
        let process_of = |thread: ThreadId| profile.thread(thread).process.index();
        let mut has_code = vec![false; profile.processes().len()];
        for &(stack, thread) in counts.keys() {
            if let Some(has_code) = has_code.get_mut(process_of(thread)) {
                *has_code |= shown.has_jitted(stack);
            }
        }
        let work_of = |(stack, thread): (StackId, ThreadId)| {
            if !has_code.get(process_of(thread)).is_some_and(|has_code| *has_code) {
                return None;
            }
            let task = || Activity::of_thread(profile.text(profile.thread(thread).name));
            Some(match shown.at(stack) {
                None | Some(Work::Native) => task().map_or(Work::Native, Work::Runtime),
                Some(work) => work,
            })
        };
        let all = counts.into_iter().map(|(of, count)| (of, (work_of(of), count))).collect();
        Self { all }
    }

    /// What was done during the samples with this stack and thread; `None` in a process without jitted code.
    #[must_use]
    pub fn during(&self, stack: StackId, thread: ThreadId) -> Option<Work> {
        self.all.get(&(stack, thread))?.0
    }
}

impl Activities {
    /// Of these samples.
    #[must_use]
    pub fn of(profile: &Profile, samples: impl Iterator<Item = SampleRow>) -> Self {
        let mut all = Self::default();
        for &(work, count) in SampledWork::of(profile, samples).all.values() {
            if let Some(work) = work {
                let of_work = all.count_mut(work);
                *of_work = of_work.saturating_add(count);
                all.samples = all.samples.saturating_add(count);
            }
        }
        all
    }

    /// Adds those of other samples.
    pub fn add(&mut self, other: &Self) {
        for work in Work::ALL {
            let count = self.count_mut(work);
            *count = count.saturating_add(other.count(work));
        }
        self.samples = self.samples.saturating_add(other.samples);
    }

    /// The samples during which this was done.
    #[must_use]
    pub const fn count(&self, work: Work) -> u64 {
        match work {
            Work::Kernel => self.kernel,
            Work::Jitted => self.jitted,
            Work::Native => self.native,
            Work::Runtime(Activity::GarbageCollector) => self.garbage_collector,
            Work::Runtime(Activity::Compiler) => self.compiler,
            Work::Runtime(Activity::Interpreter) => self.interpreter,
        }
    }

    const fn count_mut(&mut self, work: Work) -> &mut u64 {
        match work {
            Work::Kernel => &mut self.kernel,
            Work::Jitted => &mut self.jitted,
            Work::Native => &mut self.native,
            Work::Runtime(Activity::GarbageCollector) => &mut self.garbage_collector,
            Work::Runtime(Activity::Compiler) => &mut self.compiler,
            Work::Runtime(Activity::Interpreter) => &mut self.interpreter,
        }
    }

    /// What views show: the name of each activity with its samples, most first; empty if no process has jitted code. Samples in processes without jitted
    /// code are one of them, so that all of them are `all` samples.
    #[must_use]
    pub fn parts(&self, all: u64) -> Vec<(&'static str, u64)> {
        if self.samples == 0 {
            return Vec::new();
        }
        let others = (WITHOUT_JITTED_CODE, all.saturating_sub(self.samples));
        let works = Work::ALL.into_iter().map(|work| (work.name(), self.count(work)));
        let mut parts: Vec<_> = works.chain([others]).filter(|(_, samples)| *samples > 0).collect();
        parts.sort_by_key(|&(_, samples)| Reverse(samples));
        parts
    }

    /// The same of two sides that are compared: for each activity of either side, in the order of the second one, its samples in both.
    #[must_use]
    pub fn compared(sides: &[Self; 2], all: [u64; 2]) -> Vec<(&'static str, [u64; 2])> {
        let [before, after] = sides;
        let [all_before, all_after] = all;
        let before = before.parts(all_before);
        let samples_before = |of: &str| {
            before.iter().find(|(name, _)| *name == of).map_or(0, |(_, samples)| *samples)
        };
        let mut both: Vec<_> = after
            .parts(all_after)
            .into_iter()
            .map(|(name, after)| (name, [samples_before(name), after]))
            .collect();
        for &(name, samples) in &before {
            if both.iter().all(|(known, _)| *known != name) {
                both.push((name, [samples, 0]));
            }
        }
        both
    }
}

/// By number of the code: what it does for the runtime.
fn known_codes(profile: &Profile) -> Vec<Option<Activity>> {
    let of_code = |code: &Code| {
        let symbol = profile.text(code.symbol);
        let module = code.module.map(|module| profile.module(module));
        match module {
            Some(module) if module.kind == ModuleKind::File => {
                Activity::of_function(profile.text(module.path), symbol)
            }
            _ => is_interpreter(symbol, profile.text(code.tier)).then_some(Activity::Interpreter),
        }
    };
    profile.codes().iter().map(of_code).collect()
}

/// What stacks show of what was done, whatever thread they are of.
#[derive(Clone, Debug, Default)]
pub struct StackWork {
    /// What a sample with this stack was doing, if its frames say it.
    at: Vec<Option<Work>>,
    has_jitted: Vec<bool>,
}

impl StackWork {
    /// Of all stacks of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let codes = known_codes(profile);
        let mut this = Self::default();
        // What called something shows, by number of its stack.
        let mut below: Vec<Option<Work>> = Vec::with_capacity(profile.stacks().len());
        for stack in profile.stacks() {
            let frame = profile.frame(stack.frame);
            // A caller has a smaller number.
            let caller = stack.parent.map(StackId::index);
            let of_caller = caller.and_then(|caller| below.get(caller).copied().flatten());
            let of_frame = |is_top| work_of_frame(profile, &codes, frame, is_top);
            this.at.push(of_frame(true).or(of_caller));
            below.push(of_frame(false).or(of_caller));
            let above_jitted =
                caller.and_then(|caller| this.has_jitted.get(caller)).is_some_and(|has| *has);
            this.has_jitted.push(above_jitted || is_jitted(profile, frame));
        }
        this
    }

    /// What a sample with this stack was doing; `None` if the stack shows nothing.
    #[must_use]
    pub fn at(&self, stack: StackId) -> Option<Work> {
        self.at.get(stack.index()).copied().flatten()
    }

    /// Whether jitted code is on a stack.
    fn has_jitted(&self, stack: StackId) -> bool {
        self.has_jitted.get(stack.index()).is_some_and(|has| *has)
    }
}

fn is_jitted(profile: &Profile, frame: &Frame) -> bool {
    let function = profile.function(frame.function);
    match function.kind {
        FunctionKind::Jitted | FunctionKind::Interpreted => true,
        FunctionKind::Unknown => profile.text(function.name) == UNNAMED_CODE,
        _ => false,
    }
}

/// What a frame shows, if it shows anything: the innermost one, or one that called something.
fn work_of_frame(
    profile: &Profile,
    codes: &[Option<Activity>],
    frame: &Frame,
    is_top: bool,
) -> Option<Work> {
    let kind = profile.function(frame.function).kind;
    let does = frame.code.and_then(|code| codes.get(code.index()).copied().flatten());
    match (kind, does) {
        (FunctionKind::Kernel, _) => Some(Work::Kernel),
        (_, Some(Activity::Interpreter)) if !is_top => Some(Work::Native),
        (_, Some(activity)) => Some(Work::Runtime(activity)),
        (FunctionKind::Interpreted, None) if is_top => Some(Work::Runtime(Activity::Interpreter)),
        _ if is_jitted(profile, frame) => Some(if is_top { Work::Jitted } else { Work::Native }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Code, EventId, FrameId, Function, Module, ProcessId};

    /// A profile of processes with runtimes, built sample by sample.
    struct Made {
        builder: Builder,
        event: EventId,
        processes: FxHashMap<u32, ProcessId>,
        time: u64,
    }

    impl Made {
        fn new() -> Self {
            let mut builder = Builder::new();
            let event = builder.event(b"cycles");
            Self { builder, event, processes: FxHashMap::default(), time: 0 }
        }

        fn frame(&mut self, kind: FunctionKind, module: &str, symbol: &str) -> FrameId {
            let builder = &mut self.builder;
            let name = builder.string(symbol.as_bytes());
            let function = builder.function(Function::new(name, kind));
            let mut frame = Frame::new(function);
            if !module.is_empty() {
                let path = builder.string(module.as_bytes());
                let (kind, build_id) = match module.ends_with(".so") || module.contains("/bin/") {
                    true => (ModuleKind::File, Vec::new()),
                    false => (ModuleKind::Image, Vec::new()),
                };
                let mut code = Code::new(function, 16);
                code.symbol = name;
                code.module = Some(builder.module(Module { kind, path, build_id }));
                code.module_address = builder.functions().len() as u64 * 16;
                frame.code = Some(builder.code(code));
            }
            builder.frame(frame)
        }

        /// A sample of a thread with these frames, the innermost first.
        fn sample(&mut self, (pid, thread): (u32, &str), frames: &[(FunctionKind, &str, &str)]) {
            let processes = self.processes.entry(pid);
            let process = *processes.or_insert_with(|| self.builder.process(pid, b"app"));
            let tid = pid + thread.len() as u32;
            let thread = self.builder.thread(process, tid, thread.as_bytes());
            let mut stack = None;
            for &(kind, module, symbol) in frames.iter().rev() {
                let frame = self.frame(kind, module, symbol);
                stack = Some(self.builder.stack(stack, frame));
            }
            let stack = stack.expect("a frame");
            self.time += 1;
            let (time, event) = (self.time, self.event);
            self.builder.sample(SampleRow { time, thread, event, weight: 1, stack });
        }

        fn activities(self) -> Activities {
            let profile = self.builder.finish();
            Activities::of(&profile, profile.samples().iter())
        }
    }

    const JITTED: (FunctionKind, &str, &str) = (FunctionKind::Jitted, "jit-1.so.image", "JS:*f");
    const NODE: &str = "/usr/bin/node";

    #[test]
    fn a_sample_counts_for_the_innermost_known_part_of_the_runtime() {
        let native = |symbol| (FunctionKind::Native, NODE, symbol);
        let handler = native("Builtins_LdaZeroHandler");
        let scavenger = native("_ZN2v88internal9Scavenger7ProcessEPNS_11JobDelegateE");
        let parser = native("_ZN2v88internal6Parser5ParseEv");
        let memmove = (FunctionKind::Native, "/lib/libc.so", "memmove");
        let kernel = (FunctionKind::Kernel, "", "clear_page");
        for (frames, expected) in [
            (&[JITTED, handler][..], (1, 0, 0, 0, 0, 0)),
            (&[handler, JITTED], (0, 1, 0, 0, 0, 0)),
            (&[scavenger, JITTED], (0, 0, 1, 0, 0, 0)),
            (&[memmove, scavenger, handler], (0, 0, 1, 0, 0, 0)),
            (&[memmove, parser, JITTED], (0, 0, 0, 1, 0, 0)),
            (&[kernel, scavenger], (0, 0, 0, 0, 1, 0)),
            // The interpreter and jitted code called it, as a part of the program.
            (&[memmove, handler, JITTED], (0, 0, 0, 0, 0, 1)),
            (&[memmove, JITTED, parser], (0, 0, 0, 0, 0, 1)),
            (&[memmove], (0, 0, 0, 0, 0, 1)),
            (&[(FunctionKind::Unknown, "", "[jit code]")], (1, 0, 0, 0, 0, 0)),
            (&[(FunctionKind::Unknown, "", "[libfoo.so]")], (0, 0, 0, 0, 0, 1)),
            (&[(FunctionKind::Jitted, "jit-1.image", "Interpreter")], (0, 1, 0, 0, 0, 0)),
        ] {
            let mut made = Made::new();
            made.sample((1, "node"), frames);
            // Jitted code elsewhere in the process.
            made.sample((1, "node"), &[JITTED]);
            let found = made.activities();
            let Activities { jitted, interpreter, garbage_collector, compiler, .. } = found;
            let parts =
                (jitted - 1, interpreter, garbage_collector, compiler, found.kernel, found.native);
            assert_eq!((parts, found.samples), (expected, 2), "{frames:?}");
        }
    }

    #[test]
    fn parts_are_all_samples() {
        let mut of = Activities::default();
        assert_eq!(of.parts(4), []);
        (of.samples, of.jitted, of.compiler) = (4, 1, 3);
        assert_eq!(of.parts(4), [("compiler", 3), ("jitted code", 1)]);
        let parts = of.parts(10);
        assert_eq!(parts.first(), Some(&("processes without jitted code", 6)));
        assert_eq!(parts.iter().map(|(_, samples)| samples).sum::<u64>(), 10);
        let mut other = Activities::default();
        (other.samples, other.kernel, other.compiler) = (2, 1, 1);
        assert_eq!(
            Activities::compared(&[other, of], [2, 4]),
            [("compiler", [1, 3]), ("jitted code", [0, 1]), ("kernel", [1, 0])]
        );
        let before = of;
        of.add(&before);
        assert_eq!((of.samples, of.jitted, of.compiler), (8, 2, 6));
    }

    #[test]
    fn each_sample_has_the_work_that_is_counted() {
        let libjvm = (FunctionKind::Native, "/jvm/libjvm.so", "_ZN3abcE");
        let mut made = Made::new();
        made.sample((1, "C2 CompilerThre"), &[libjvm]);
        made.sample((1, "main"), &[libjvm]);
        made.sample((1, "main"), &[JITTED]);
        made.sample((100, "main"), &[libjvm]);
        let profile = made.builder.finish();
        let all = SampledWork::of(&profile, profile.samples().iter());
        let of_each: Vec<_> =
            profile.samples().iter().map(|row| all.during(row.stack, row.thread)).collect();
        let compiler = Work::Runtime(Activity::Compiler);
        assert_eq!(of_each, [Some(compiler), Some(Work::Native), Some(Work::Jitted), None]);
        let counted = Activities::of(&profile, profile.samples().iter());
        for work in Work::ALL {
            let samples = of_each.iter().filter(|of| **of == Some(work)).count();
            assert_eq!(counted.count(work), samples as u64, "{work:?}");
        }
    }

    #[test]
    fn threads_with_one_task_do_it_where_the_stack_says_nothing() {
        let libjvm = (FunctionKind::Native, "/jvm/libjvm.so", "_ZN3abcE");
        let mut made = Made::new();
        made.sample((1, "C2 CompilerThre"), &[libjvm]);
        made.sample((1, "G1 Conc#0"), &[libjvm]);
        made.sample((1, "main"), &[JITTED]);
        // A process without jitted code.
        made.sample((100, "C2 CompilerThre"), &[libjvm]);
        let found = made.activities();
        assert_eq!((found.samples, found.compiler, found.garbage_collector), (3, 1, 1));
    }
}
