//! Where the samples of a recording are: printed by `inject`, `record` and `demo`.

use jitscribe_inject::Report;
use profile_text::activity_text;

use super::stacks;
use crate::sample_summary::SampleSummary;
use crate::text::percent;
use crate::{note, text};

/// Reports which samples have jitted code on their stacks only.
pub fn print_named(report: &Report) {
    let samples = report.samples;
    if samples.through > 0 {
        note::say(format_args!(
            "{} more ({}) have jitted code on their call stacks",
            samples.through,
            percent(samples.through, samples.samples),
        ));
    }
}

/// Reports what the samples show: what was done, and in which functions. `named` is the number of samples in named code.
pub fn print_summary(summary: &SampleSummary, named: u64) {
    let SampleSummary { samples, with_lines, activities, stacks, top, in_heap_images } = summary;
    if named > 0 {
        note::say(format_args!(
            "{with_lines} of the named samples ({}) have source lines",
            percent(*with_lines, named),
        ));
    }
    if let Some(stacks) = stacks {
        stacks::print(stacks);
    }
    if let Some(line) = activity_text(activities, *samples) {
        note::say(line);
    }
    let has_stacks = top.iter().any(|function| function.inclusive.is_some());
    // Callers alone say little, unless nothing else is known: CPython compiles only trampolines.
    let has_own = top.iter().any(|function| function.samples > 0);
    if !top.is_empty() {
        let total = if has_stacks { "    total" } else { "" };
        note::say(format_args!("    self{total} samples  function"));
    }
    for function in top.iter().filter(|function| !has_own || function.samples > 0) {
        let total = function.inclusive.map(|total| percent(total, *samples));
        let total = total.map(|total| format!(" {total:>8}")).unwrap_or_default();
        let place = match (function.file.as_str(), function.line) {
            ("", _) => String::new(),
            (file, 0) => format!("  {}", text::short(file.as_bytes())),
            (file, line) if function.shares_line => {
                format!("  {}:{line}:{}", text::short(file.as_bytes()), function.column)
            }
            (file, line) => format!("  {}:{line}", text::short(file.as_bytes())),
        };
        note::say(format_args!(
            "{:>8}{total} {:>7}  {}{place}",
            percent(function.samples, *samples),
            function.samples,
            text::short(function.name.as_bytes())
        ));
    }
    for line in in_heap_images {
        note::say(line);
    }
}
