//! The report of `inject --json`, which `record --json` has too. `docs/scripts.md` describes its fields.

use std::path::Path;

use jitscribe_inject::{
    Counts, ImageReport, Report, SourceReport, StackCounts, UnnamedProcess, Warning,
};
use profile::Activities;
use serde::Serialize;

use crate::Result;
use crate::sample_summary::{SampleSummary, TopFunction};
use crate::text;

/// The version of the reports of `record` and `inject`. It grows when a field is removed or changes its meaning, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// The report of `inject`.
#[derive(Debug, Serialize)]
pub struct Injected<'r> {
    schema_version: u32,
    verb: &'static str,
    #[serde(flatten)]
    report: Fields<'r>,
}

/// The fields that `inject` and `record` have in common.
#[derive(Debug, Serialize)]
pub struct Fields<'r> {
    #[serde(serialize_with = "text::path_in_json")]
    input: Option<&'r Path>,
    #[serde(serialize_with = "text::path_in_json")]
    output: Option<&'r Path>,
    events: u64,
    samples: Samples<'r>,
    has_stack_copies: bool,
    has_trace: bool,
    stacks: Option<&'r StackCounts>,
    sources: &'r [SourceReport],
    images: &'r [ImageReport],
    activities: Activities,
    unnamed: &'r [UnnamedProcess],
    top: &'r [TopFunction],
    warnings: &'r [Warning],
}

/// Samples by where they were taken.
#[derive(Debug, Serialize)]
struct Samples<'r> {
    #[serde(flatten)]
    counts: &'r Counts,
    with_lines: u64,
}

impl<'r> Fields<'r> {
    /// Of an injection, and of the samples of its output.
    pub fn new(report: &'r Report, summary: &'r SampleSummary) -> Self {
        Self {
            input: Some(&report.input),
            output: report.output.as_deref(),
            events: report.events,
            samples: Samples { counts: &report.samples, with_lines: summary.with_lines },
            has_stack_copies: report.has_stack_copies,
            has_trace: report.has_trace,
            stacks: summary.stacks.as_ref(),
            sources: &report.sources,
            images: &report.images,
            activities: summary.activities,
            unnamed: &report.unnamed,
            top: &summary.top,
            warnings: &report.warnings,
        }
    }
}

impl<'r> Injected<'r> {
    /// The report on an injection.
    pub fn new(report: &'r Report, summary: &'r SampleSummary) -> Self {
        let report = Fields::new(report, summary);
        Self { schema_version: SCHEMA_VERSION, verb: "inject", report }
    }
}

/// Prints a report as JSON on standard output.
pub fn print_json(report: &impl Serialize) -> Result<()> {
    let mut out = text::Out::new();
    out.json_pretty(report)?;
    out.finish()
}
