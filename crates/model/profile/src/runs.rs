//! Several recordings as one profile.

use crate::builder::Builder;
use crate::function::Function;
use crate::id::{EventId, ThreadId};
use crate::profile::{About, Profile};
use crate::sample::SampleRow;
use crate::selection::Selection;
use crate::stack::Frame;

/// Several recordings as one profile, in which each recording is a thread.
///
/// It has functions and stacks of them, which is what a [`Comparison`](crate::Comparison) needs; lines, code and processes are left out.
#[derive(Debug, Default)]
pub struct Runs {
    builder: Builder,
    names: Vec<Vec<u8>>,
}

impl Runs {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the selected samples of a recording.
    pub fn add(&mut self, profile: &Profile, selection: &Selection) {
        let builder = &mut self.builder;
        let name = &profile.about.recording;
        // Threads have numbers by their order, so that a thread's number is the recording's.
        let run = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let process = builder.process(run, name);
        let thread = builder.thread(process, run, name);
        self.names.push(name.clone());

        let mut is_used = vec![false; profile.stacks().len()];
        for sample in selection.of(profile) {
            if let Some(is_used) = is_used.get_mut(sample.stack.index()) {
                *is_used = true;
            }
        }
        profile.mark_callers(&mut is_used);
        let functions: Vec<_> = profile
            .functions()
            .iter()
            .map(|function| {
                let mut text = |id| builder.string(profile.text(id));
                let mut same = Function::new(text(function.name), function.kind);
                same.file = text(function.file);
                (same.line, same.column) = (function.line, function.column);
                builder.function(same)
            })
            .collect();
        let mut stacks = vec![None; profile.stacks().len()];
        for (place, (stack, _)) in
            profile.stacks().iter().zip(&is_used).enumerate().filter(|it| *it.1.1)
        {
            let function = profile.frame(stack.frame).function;
            let Some(&function) = functions.get(function.index()) else { continue };
            let parent = stack.parent.and_then(|id| stacks.get(id.index()).copied().flatten());
            let frame = builder.frame(Frame::new(function));
            let same = builder.stack(parent, frame);
            if let Some(stack) = stacks.get_mut(place) {
                *stack = Some(same);
            }
        }
        let event = |id: EventId| profile.text(profile.event(id).name);
        let events: Vec<_> = (0..)
            .map(EventId)
            .take(profile.events().len())
            .map(|id| builder.event(event(id)))
            .collect();
        for sample in selection.of(profile) {
            let stack = stacks.get(sample.stack.index()).copied().flatten();
            if let (Some(stack), Some(&event)) = (stack, events.get(sample.event.index())) {
                builder.sample(SampleRow { thread, event, stack, ..sample });
            }
        }
    }

    /// The profile. Its name is those of the recordings.
    #[must_use]
    pub fn finish(mut self) -> Profile {
        self.builder.about(About { recording: self.names.join(&b", "[..]), ..About::default() });
        self.builder.finish()
    }
}

/// Samples of a profile of so many [`Runs`], each recording's apart.
pub(crate) fn by_run<'s>(
    samples: &'s mut dyn Iterator<Item = SampleRow>,
    runs: usize,
) -> Vec<Box<dyn Iterator<Item = SampleRow> + 's>> {
    if runs == 1 {
        return vec![Box::new(samples)];
    }
    let mut apart: Vec<Vec<SampleRow>> = vec![Vec::new(); runs];
    for sample in samples {
        let ThreadId(run) = sample.thread;
        if let Some(samples) = usize::try_from(run).ok().and_then(|run| apart.get_mut(run)) {
            samples.push(sample);
        }
    }
    apart
        .into_iter()
        .map(|samples| Box::new(samples.into_iter()) as Box<dyn Iterator<Item = _>>)
        .collect()
}
