//! From the samples to what is mapped where and when.

use super::attributed::Attributed;
use super::settings::Run;
use crate::attribution::activity::RuntimeFiles;
use crate::attribution::hits::Hits;
use crate::attribution::{SampleAttribution, interpreted};
use crate::codes::sources::Codes;
use crate::parallel::join;
use crate::plan::Plan;
use crate::progress::{Progress, Stage};
use crate::warning::Warning;
use crate::write::destination::Destination;
use crate::write::listed_codes::ListedCodes;

/// How the call stacks of the new recording are counted.
#[derive(Clone, Copy)]
pub struct StackCounting {
    /// Whether the new recording is read for its stacks.
    pub counts: bool,
    /// Whether these are copied, so that their callers are known only then.
    pub unwinds: bool,
}

/// The plan, and what else is decided before anything is written.
pub struct Planned<'s> {
    /// All code. The timelines, which are large, are gone unless a later phase looks up code by time: for the frames of an
    /// interpreter, or for stacks that are yet to be unwound.
    pub codes: Codes<'s>,
    /// Needed until the report is made.
    pub attribution: SampleAttribution,
    /// Needed until copied stacks are counted.
    pub runtimes: RuntimeFiles,
    /// The samples by the codes' numbers. Needed until the report is made.
    pub hits: Hits,
    /// The codes to list beside the images. Needed until the list is written.
    pub list: ListedCodes,
    /// Needed until the report is made, which names the images' processes.
    pub plan: Plan,
    /// Needed until stacks are counted.
    pub stacks: StackCounting,
}

impl<'s> Planned<'s> {
    /// Makes the plan. At the same time, another thread selects the codes to list.
    pub fn plan(
        run: Run<'_>,
        attributed: Attributed<'s>,
        destination: &Destination<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let Attributed { mut codes, layout, attribution, runtimes } = attributed;
        let Run { settings, index, spaces, .. } = run;
        (settings.progress)(Progress::Begins(Stage::WritingImages));
        let table = &codes.table;
        let ((hits, list), plan) = join(
            || {
                let hits = Hits::count(&attribution, table.history.len());
                let list = ListedCodes::of(table, &hits);
                (hits, list)
            },
            || Plan::with_layout(index, spaces, table, &attribution, layout),
        );
        let counts = settings.count_stacks && matches!(destination, Destination::File(_));
        let unwinds = counts && index.stack_copies;
        if !unwinds && !interpreted::are_in(&codes.table) {
            // Free memory for the images' tables.
            codes.table.history.forget_timelines();
        }
        warnings.extend(plan.warnings());
        let stacks = StackCounting { counts, unwinds };
        Self { codes, attribution, runtimes, hits, list, plan, stacks }
    }
}
