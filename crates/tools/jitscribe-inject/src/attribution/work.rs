//! What one sample shows of the [activities](super::activity) of a runtime: by the frames of its stack, and by its thread.

use std::collections::HashMap;

use perf_data::Comm;

use super::activity::{Activities, Activity, of_thread};

/// What a sample shows, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Compiled code.
    Jitted,
    /// Other code of the program.
    Native,
    /// A part of the runtime.
    Runtime(Activity),
}

/// What threads do that have one task, by their names so far.
#[derive(Debug, Default)]
pub struct ThreadTasks(HashMap<u32, Activity>);

impl ThreadTasks {
    /// A thread has a new name.
    pub fn name(&mut self, comm: &Comm<'_>) {
        match of_thread(comm.name) {
            Some(activity) => self.0.insert(comm.tid, activity),
            None => self.0.remove(&comm.tid),
        };
    }

    /// What a thread does, if it has one task.
    pub fn of(&self, tid: Option<u32>) -> Option<Activity> {
        self.0.get(&tid?).copied()
    }
}

impl Activities {
    /// Counts a sample in the kernel.
    pub fn add_in_kernel(&mut self) {
        self.samples += 1;
        self.kernel += 1;
    }

    /// Counts a sample in user code by what its stack shows, and by the task of its thread.
    pub fn add_in_user(&mut self, work: Option<Work>, task: Option<Activity>) {
        self.samples += 1;
        self.add(match (work, task) {
            (None | Some(Work::Native), Some(activity)) => Work::Runtime(activity),
            (work, _) => work.unwrap_or(Work::Native),
        });
    }

    /// Moves the samples in interpreters among the codes from compiled code to the interpreter.
    pub fn with_interpreted(mut self, samples: u64) -> Self {
        let interpreted = samples.min(self.jitted);
        self.jitted -= interpreted;
        self.interpreter += interpreted;
        self
    }

    fn add(&mut self, work: Work) {
        let count = match work {
            Work::Jitted => &mut self.jitted,
            Work::Native => &mut self.native,
            Work::Runtime(Activity::GarbageCollector) => &mut self.garbage_collector,
            Work::Runtime(Activity::Compiler) => &mut self.compiler,
            Work::Runtime(Activity::Interpreter) => &mut self.interpreter,
        };
        *count += 1;
    }
}

/// What a frame says of the sample: `None` if the frame's caller has to be asked. Only the frame at the top runs itself; below, code was
/// called by the program.
pub fn work_of_frame(
    is_top: bool,
    is_code: bool,
    native: impl FnOnce() -> Option<Activity>,
) -> Option<Work> {
    if is_code {
        return Some(if is_top { Work::Jitted } else { Work::Native });
    }
    match native()? {
        Activity::Interpreter if !is_top => Some(Work::Native),
        activity => Some(Work::Runtime(activity)),
    }
}
