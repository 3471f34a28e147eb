//! What is said of an injection, and printed.

use std::path::Path;

use jitscribe_inject::Report;

use super::findings::print_named;
use crate::text::shell_word;
use crate::unnamed::{self, Started};
use crate::{note, text};

/// Says on standard error what must be known.
pub fn warn(report: &Report) {
    for warning in &report.warnings {
        note::warning(warning);
    }
}

/// Prints which files were read and written, if the user wants to know.
pub fn print_details(report: &Report) {
    for source in &report.sources {
        note::detail(format_args!(
            "{}: {} codes of process {}",
            text::path(&source.path),
            source.codes,
            source.pid
        ));
    }
    for image in &report.images {
        note::detail(format_args!(
            "{}: {} bytes, code of process {}",
            text::path(&image.path),
            image.size,
            image.pid
        ));
    }
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
    print_named(report);
    unnamed::print(report, Started::default());
}

/// Says on standard error where the new recording is, and what to do with it.
pub fn say_next(report: &Report, output: &Path) {
    let output = shell_word(output);
    let next = if report.has_trace { "perf script --insn-trace" } else { "perf report" };
    note::say(format_args!("written: {output}; next: {next} -i {output}"));
}
