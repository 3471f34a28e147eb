//! From the new recording to the report.

use std::path::Path;

use printable::Hexadecimal;

use super::settings::{Run, Settings};
use super::written::Written;
use crate::Result;
use crate::attribution::copied_stacks::{CopiedStacks, Unwound};
use crate::attribution::counts::Counts;
use crate::attribution::mapped_files::Guesses;
use crate::attribution::samples::SampleEvent;
use crate::progress::{Progress, Stage};
use crate::recording::Recording;
use crate::summary::report::{ImageReport, Report};
use crate::summary::stack_counts::StackCounts;
use crate::summary::stacks::StackCounter;
use crate::warning::Warning;

/// The new recording with the counts of its call stacks: all that a report is made of.
pub struct Counted<'s> {
    written: Written<'s>,
    /// How many stacks are whole; `None` if there are none, or they were not to be counted.
    stacks: Option<StackCounts>,
    /// What copied stacks show, in place of what the attribution shows of stacks.
    unwound: Option<Unwound>,
}

impl<'s> Counted<'s> {
    /// Reads the new recording, if its stacks are to be counted.
    pub fn read(run: Run<'_>, written: Written<'s>) -> Result<Self> {
        let Written { output, codes, runtimes, stacks, .. } = &written;
        let table = &codes.table;
        let copied =
            stacks.unwinds.then(|| CopiedStacks::new(run.index, run.spaces, table, runtimes));
        let (stacks, unwound) = match output {
            Some(output) if stacks.counts => read_stacks(run.settings, output, copied)?,
            _ => (None, None),
        };
        Ok(Self { written, stacks, unwound })
    }

    /// The report of the injection.
    pub fn report(self, run: Run<'_>, warnings: Vec<Warning>) -> Result<Report> {
        let Self { written, stacks, unwound } = self;
        let Written { output, images, codes, attribution, mut hits, plan, functions, top, .. } =
            written;
        let Run { path, index, .. } = run;
        let spaces = plan.arenas.iter().flat_map(|arena| arena.images.iter().map(|_| arena.space));
        let pids = spaces.map(|space| index.processes.pid(space));
        let images = images.into_iter().zip(pids).map(|(image, pid)| ImageReport {
            path: image.path,
            pid,
            size: image.finished.file_size,
            build_id: Hexadecimal(&image.finished.build_id).to_string(),
        });
        let images = images.collect();
        let functions = match functions {
            Some(functions) => functions,
            None => {
                let stacks =
                    unwound.as_ref().map_or(attribution.stacks(), |unwound| &unwound.stacks);
                hits.add_stacks(stacks);
                top.finish(&hits, stacks, &codes.table)?
            }
        };
        let activities =
            unwound.as_ref().map_or(attribution.activities(), |unwound| unwound.activities);
        let samples = Counts { with_lines: functions.with_lines, ..attribution.counts };
        Ok(Report {
            input: path.to_owned(),
            output,
            events: index.events,
            samples,
            activities: activities.with_interpreted(functions.interpreted),
            has_stack_copies: index.stack_copies,
            has_trace: index.has_trace,
            stacks,
            top: functions.top,
            sources: codes.reports,
            images,
            warnings,
        })
    }
}

/// Reads the new recording: how many of its stacks are whole, and what those show that were copied.
fn read_stacks(
    settings: &Settings<'_>,
    output: &Path,
    copied: Option<CopiedStacks<'_>>,
) -> Result<(Option<StackCounts>, Option<Unwound>)> {
    (settings.progress)(Progress::Begins(Stage::CountingStacks));
    let mut recording = Recording::open(output, &|_| {})?;
    let Some(mut copied) = copied else {
        return Ok((StackCounts::of(&mut recording, settings.files)?, None));
    };
    let mut counter = StackCounter::new(&recording);
    let tick = |at| (settings.progress)(Progress::At(at));
    recording.read_samples(
        settings.files,
        Guesses::Both,
        &tick,
        &mut |memory, event| match event {
            SampleEvent::Sample(sample) => {
                counter.add(memory, &sample);
                copied.add(&sample);
            }
            SampleEvent::Comm(comm) => copied.name_thread(&comm),
            SampleEvent::Fork(_) => {}
        },
    )?;
    Ok((counter.finish(), Some(copied.finish())))
}
