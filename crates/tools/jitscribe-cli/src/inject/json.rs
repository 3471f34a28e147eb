//! The report of `inject --json`. `docs/scripts.md` describes its fields.

use jitscribe_inject::Report;
use serde::Serialize;

use crate::Result;
use crate::text;

/// The version of the reports of `record` and `inject`. It grows when a field is removed or changes its meaning, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// The report.
#[derive(Debug, Serialize)]
pub struct Injected<'r> {
    schema_version: u32,
    verb: &'static str,
    #[serde(flatten)]
    report: &'r Report,
}

impl<'r> Injected<'r> {
    /// The report on an injection.
    pub fn new(report: &'r Report) -> Self {
        Self { schema_version: SCHEMA_VERSION, verb: "inject", report }
    }
}

/// Prints a report as JSON on standard output.
pub fn print_json(report: &impl Serialize) -> Result<()> {
    let mut out = text::Out::new();
    out.json_pretty(report)?;
    out.finish()
}
