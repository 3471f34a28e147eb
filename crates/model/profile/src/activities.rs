//! Samples by what the runtime was doing.

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

/// What a stack shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Kernel,
    /// Compiled code, or code without a name.
    Jitted,
    /// What jitted code called, or what is called from no known part of a runtime.
    Native,
    Runtime(Activity),
}

impl Activities {
    /// Of these samples.
    #[must_use]
    pub fn of(profile: &Profile, samples: impl Iterator<Item = SampleRow>) -> Self {
        let mut counts: FxHashMap<(StackId, ThreadId), u64> = FxHashMap::default();
        for sample in samples {
            let count = counts.entry((sample.stack, sample.thread)).or_insert(0);
            *count = count.saturating_add(1);
        }
        let codes = known_codes(profile);
        let process_of = |thread: ThreadId| profile.thread(thread).process.index();
        let mut has_code = vec![false; profile.processes().len()];
        let mut shown: FxHashMap<StackId, (Option<Work>, bool)> = FxHashMap::default();
        for &(stack, thread) in counts.keys() {
            let (_, is_jitted) =
                shown.entry(stack).or_insert_with(|| work_of(profile, &codes, stack));
            if let Some(has_code) = has_code.get_mut(process_of(thread)) {
                *has_code |= *is_jitted;
            }
        }
        let mut all = Self::default();
        for (&(stack, thread), &count) in &counts {
            if !has_code.get(process_of(thread)).is_some_and(|has_code| *has_code) {
                continue;
            }
            let task = || Activity::of_thread(profile.text(profile.thread(thread).name));
            let work = match shown.get(&stack).and_then(|(work, _)| *work) {
                None | Some(Work::Native) => task().map_or(Work::Native, Work::Runtime),
                Some(work) => work,
            };
            all.add(work, count);
        }
        all
    }

    fn add(&mut self, work: Work, samples: u64) {
        let count = match work {
            Work::Kernel => &mut self.kernel,
            Work::Jitted => &mut self.jitted,
            Work::Native => &mut self.native,
            Work::Runtime(Activity::GarbageCollector) => &mut self.garbage_collector,
            Work::Runtime(Activity::Compiler) => &mut self.compiler,
            Work::Runtime(Activity::Interpreter) => &mut self.interpreter,
        };
        *count = count.saturating_add(samples);
        self.samples = self.samples.saturating_add(samples);
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

/// What a stack shows, if it shows anything, and whether jitted code is on it.
fn work_of(profile: &Profile, codes: &[Option<Activity>], stack: StackId) -> (Option<Work>, bool) {
    let is_jitted = |frame: &Frame| {
        let function = profile.function(frame.function);
        match function.kind {
            FunctionKind::Jitted | FunctionKind::Interpreted => true,
            FunctionKind::Unknown => profile.text(function.name) == UNNAMED_CODE,
            _ => false,
        }
    };
    let work = profile.frames_of(stack).enumerate().find_map(|(depth, frame)| {
        let is_top = depth == 0;
        let kind = profile.function(frame.function).kind;
        let does = frame.code.and_then(|code| codes.get(code.index()).copied().flatten());
        match (kind, does) {
            (FunctionKind::Kernel, _) => Some(Work::Kernel),
            (_, Some(Activity::Interpreter)) if !is_top => Some(Work::Native),
            (_, Some(activity)) => Some(Work::Runtime(activity)),
            (FunctionKind::Interpreted, None) if is_top => {
                Some(Work::Runtime(Activity::Interpreter))
            }
            _ if is_jitted(frame) => Some(if is_top { Work::Jitted } else { Work::Native }),
            _ => None,
        }
    });
    (work, profile.frames_of(stack).any(is_jitted))
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
