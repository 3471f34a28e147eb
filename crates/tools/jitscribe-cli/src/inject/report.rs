//! What is said of an injection, and printed.

use jitscribe_inject::Report;

use crate::text::shell_word;
use crate::{Result, note, text};

/// Says on standard error what must be known.
pub fn warn(report: &Report) {
    for warning in &report.warnings {
        note::warning(warning);
    }
}

/// Prints a report as JSON on standard output.
pub fn print_json(report: &Report) -> Result<()> {
    let mut out = text::Out::new();
    out.json_pretty(report)?;
    out.finish()
}

/// Says on standard error what was done.
pub fn say(report: &Report) {
    warn(report);
    let codes: usize = report.sources.iter().map(|source| source.codes).sum();
    note::say(format_args!(
        "{}: {} samples, {} in jitted code: {} named, {} inferred, {} unnamed; {codes} codes \
         from {} files, {} images",
        text::path(&report.input),
        report.samples.samples,
        report.samples.jitted(),
        report.samples.named,
        report.samples.inferred,
        report.samples.unnamed,
        report.sources.len(),
        report.images.len(),
    ));
    if let Some(output) = &report.output {
        let output = shell_word(output);
        note::say(format_args!("written: {output}; next: perf report -i {output}"));
    }
}
