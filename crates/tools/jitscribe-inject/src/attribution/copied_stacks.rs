//! What stacks show that were copied: which codes are on them together, and what the runtime was doing.
//!
//! The callers are known only once the new recording's stacks are unwound. What is at their addresses is looked up as
//! [`attribution`](super) does it for stacks that the kernel walked.

use code_timeline::CodeId;
use jit_code::Kind;
use perf_data::Comm;

use super::activity::{Activities, Activity, NativeActivities, RuntimeFiles};
use super::inclusive::StackSets;
use super::samples::{StackEnd, StackSample};
use super::work::{ThreadTasks, Work, work_of_frame};
use crate::codes::code_table::CodeTable;
use crate::codes::lookup::{LookupCache, Numbers, Occupant};
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// What unwound stacks show.
#[derive(Debug)]
pub struct Unwound {
    /// Samples by what was done, with those in interpreters among the codes as compiled code.
    pub activities: Activities,
    /// The codes on stacks.
    pub stacks: StackSets,
}

/// Collects what unwound stacks show.
pub struct CopiedStacks<'a> {
    table: &'a CodeTable<'a>,
    cache: LookupCache<'a, Numbers>,
    natives: NativeActivities<'a>,
    threads: ThreadTasks,
    activities: Activities,
    stacks: StackSets,
}

impl<'a> CopiedStacks<'a> {
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        table: &'a CodeTable<'a>,
        runtimes: &'a RuntimeFiles,
    ) -> Self {
        Self {
            table,
            cache: LookupCache::new(index, spaces, table, &|_| false),
            natives: NativeActivities::new(index, spaces, runtimes),
            threads: ThreadTasks::default(),
            activities: Activities::default(),
            stacks: StackSets::default(),
        }
    }

    /// A thread has a new name.
    pub fn name_thread(&mut self, comm: &Comm<'_>) {
        self.threads.name(comm);
    }

    /// Adds a sample of the new recording.
    pub fn add(&mut self, sample: &StackSample<'_>) {
        let Some(process) = self.cache.process(sample.pid, sample.time) else { return };
        let has_code = process.owner().is_some();
        let mut work = None;
        for (depth, &address) in sample.user.iter().enumerate() {
            let occupant = self.cache.at(&process, address, sample.time, &mut Numbers).occupant;
            let code = self.code(occupant);
            let is_top = depth == 0;
            code.into_iter().for_each(|code| match is_top && sample.is_in_user {
                true => self.stacks.add_own(code),
                false => self.stacks.add(code),
            });
            if !has_code || work.is_some() {
                continue;
            }
            let interprets = code.is_some_and(|code| self.is_interpreted(code));
            work = match occupant {
                _ if is_top && interprets => Some(Work::Runtime(Activity::Interpreter)),
                Occupant::Nothing { unnamed: true, .. } if is_top => Some(Work::Jitted),
                _ => work_of_frame(is_top, code.is_some(), || {
                    self.natives.at(process.space(), address, sample.time)
                }),
            };
        }
        self.stacks.end_sample(matches!(sample.end, StackEnd::Whole | StackEnd::Ended(_)));
        match (has_code, sample.is_in_user) {
            (false, _) => {}
            (true, true) => self.activities.add_in_user(work, self.threads.of(Some(sample.tid))),
            (true, false) => self.activities.add_in_kernel(),
        }
    }

    fn code(&self, occupant: Occupant<CodeId>) -> Option<CodeId> {
        match occupant {
            Occupant::Code { mark, .. } => Some(mark),
            // A frame of the interpreter refers to its method: classes are found some time after they were loaded.
            Occupant::Nothing { late, .. } => late.filter(|&code| self.is_interpreted(code)),
        }
    }

    /// Whether it is a method's bytecode, which stands for the interpreter in the new recording.
    fn is_interpreted(&self, code: CodeId) -> bool {
        self.table.kind(code) == Kind::JavaMethod
    }

    /// All that was collected.
    pub fn finish(self) -> Unwound {
        Unwound { activities: self.activities, stacks: self.stacks }
    }
}
