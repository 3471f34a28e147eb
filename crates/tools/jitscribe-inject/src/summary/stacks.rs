//! How many call stacks of a recording are whole, and why the others end.
//!
//! Of stacks that were walked while the program ran (by frame pointers), the last frame is looked at. Stacks that were copied are unwound
//! as perf unwinds them.

use perf_data::sample_type;
use stack_unwind::{End, Guess};

use super::stack_counts::{StackCounts, StackEnds, Stacks};
use crate::Result;
use crate::attribution::mapped_files::Guesses;
use crate::attribution::samples::{SampleEvent, SampledMemory, StackEnd, StackSample};
use crate::files::SourceFiles;
use crate::recording::Recording;

/// The user part of a sample's call stack.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallStack<'s> {
    /// The thread.
    pub tid: u32,
    /// The time, in nanoseconds of the recording's clock.
    pub time: u64,
    /// The instruction pointer, and then the addresses of the calls, innermost first: each is within the call, as perf has them.
    pub frames: &'s [u64],
    /// Why it ends; `None` if it is whole.
    pub end: Option<End>,
    /// Size of the copy in bytes; 0 if the kernel walked the stack.
    pub copied: u64,
}

impl Recording {
    /// Passes the call stacks of all samples to `take`. Those that were copied are unwound: `guess` says how, where there are no tables.
    /// Programs and libraries are opened by `files`. Returns how the stacks were recorded; `None` if there are none.
    ///
    /// # Errors
    /// If the recording cannot be read any more.
    pub fn each_stack(
        &mut self,
        files: &dyn SourceFiles,
        guess: Guess,
        take: &mut dyn FnMut(CallStack<'_>),
    ) -> Result<Option<Stacks>> {
        let Some(recorded) = self.recorded_stacks() else { return Ok(None) };
        self.each_sample(files, Guesses::One(guess), &|_| {}, &mut |memory, event| {
            if let SampleEvent::Sample(sample) = event
                && let Some(end) = user_end(recorded, memory, &sample, sample.end)
            {
                let StackSample { tid, time, user: frames, copied, .. } = sample;
                take(CallStack { tid, time, frames, end, copied });
            }
        })?;
        Ok(Some(recorded))
    }

    /// How the stacks were recorded; `None` if there are none.
    fn recorded_stacks(&self) -> Option<Stacks> {
        let attrs = self.input.attrs().list();
        if self.index.stack_copies {
            Some(Stacks::Copied)
        } else {
            let are_walked = attrs.iter().any(|attr| attr.has(sample_type::CALLCHAIN));
            are_walked.then_some(Stacks::Walked)
        }
    }
}

/// Where the stack of a sample ends, if it has user code: outside there is none, inside it is whole.
fn user_end(
    recorded: Stacks,
    memory: &mut SampledMemory<'_>,
    sample: &StackSample<'_>,
    end: StackEnd,
) -> Option<Option<End>> {
    match (recorded, end) {
        (Stacks::Copied, StackEnd::Whole) => Some(None),
        (Stacks::Copied, StackEnd::Ended(end)) => Some(Some(end)),
        (Stacks::Walked, StackEnd::Walked) => {
            sample.space?;
            let &last = sample.user.last()?;
            Some((!memory.0.is_bottom(last)).then_some(End::Unknown))
        }
        _ => None,
    }
}

/// Counts the stacks of a recording as perf shows them, sample by sample: read with [`Guesses::Both`](crate::Guesses::Both).
#[derive(Debug)]
pub struct StackCounter {
    recorded: Option<Stacks>,
    counts: StackCounts,
}

impl StackCounter {
    /// For the samples of this recording.
    #[must_use]
    pub fn new(recording: &Recording) -> Self {
        let recorded = recording.recorded_stacks();
        let counts = StackCounts {
            recorded: recorded.unwrap_or(Stacks::Walked),
            stacks: 0,
            whole: 0,
            ends: StackEnds::default(),
            copied: 0,
        };
        Self { recorded, counts }
    }

    /// Counts a sample.
    pub fn add(&mut self, memory: &mut SampledMemory<'_>, sample: &StackSample<'_>) {
        let Some(recorded) = self.recorded else { return };
        let Some(end) = user_end(recorded, memory, sample, sample.end_as_perf) else { return };
        let counts = &mut self.counts;
        counts.stacks += 1;
        counts.copied = counts.copied.max(sample.copied);
        match end {
            None => counts.whole += 1,
            Some(end) => counts.ends.count(end),
        }
    }

    /// The counts; `None` if the recording has no stacks.
    #[must_use]
    pub fn finish(self) -> Option<StackCounts> {
        self.recorded.map(|_| self.counts)
    }
}

impl StackEnds {
    fn count(&mut self, end: End) {
        let counter = match end {
            End::BehindCopy { .. } => &mut self.deeper_than_copy,
            End::NoFile { .. }
            | End::NoTables { .. }
            | End::NoFramePointer
            | End::BadFramePointer => &mut self.no_tables,
            End::OtherMemory { .. } => &mut self.other_memory,
            _ => &mut self.other,
        };
        *counter += 1;
    }
}
