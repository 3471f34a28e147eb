//! From the samples to what is mapped where and when.

use super::attributed::Attributed;
use super::settings::Run;
use crate::attribution::hits::Hits;
use crate::attribution::{SampleAttribution, interpreted};
use crate::codes::sources::Codes;
use crate::parallel::join;
use crate::plan::Plan;
use crate::progress::{Progress, Stage};
use crate::warning::Warning;
use crate::write::listed_codes::ListedCodes;

/// The plan, and what else is decided before anything is written.
pub struct Planned<'s> {
    /// All code. The timelines, which are large, are gone unless a later phase looks up code by time: for the frames of an
    /// interpreter.
    pub codes: Codes<'s>,
    /// Needed until the report is made.
    pub attribution: SampleAttribution,
    /// The samples by the codes' numbers. Needed until the list is written.
    pub hits: Hits,
    /// The codes to list beside the images. Needed until the list is written.
    pub list: ListedCodes,
    /// Needed until the report is made, which names the images' processes.
    pub plan: Plan,
}

impl<'s> Planned<'s> {
    /// Makes the plan. At the same time, another thread selects the codes to list.
    pub fn plan(run: Run<'_>, attributed: Attributed<'s>, warnings: &mut Vec<Warning>) -> Self {
        let Attributed { mut codes, layout, attribution } = attributed;
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
        if !interpreted::are_in(&codes.table) {
            // Free memory for the images' tables.
            codes.table.history.forget_timelines();
        }
        warnings.extend(plan.warnings());
        Self { codes, attribution, hits, list, plan }
    }
}
