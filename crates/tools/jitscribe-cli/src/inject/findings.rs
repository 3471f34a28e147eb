//! Where the samples of a recording are: printed by `inject` and `record`.

use jitscribe_inject::{Activities, Report};

use super::stacks;
use crate::text::percent;
use crate::{note, text};

/// Reports where the samples are: what was done, and in which functions.
pub fn print_findings(report: &Report) {
    let samples = report.samples;
    if samples.through > 0 {
        note::say(format_args!(
            "{} more ({}) have jitted code on their call stacks",
            samples.through,
            percent(samples.through, samples.samples),
        ));
    }
    if samples.named > 0 {
        note::say(format_args!(
            "{} of the named samples ({}) have source lines",
            samples.with_lines,
            percent(samples.with_lines, samples.named),
        ));
    }
    if let Some(stacks) = &report.stacks {
        stacks::print(stacks);
    }
    if let Some(line) = activities(&report.activities) {
        note::say(line);
    }
    let has_stacks = report.top.iter().any(|function| function.inclusive.is_some());
    // Callers alone say little, unless nothing else is known: CPython compiles only trampolines.
    let has_own = report.top.iter().any(|function| function.samples > 0);
    if !report.top.is_empty() {
        let total = if has_stacks { "    total" } else { "" };
        note::say(format_args!("    self{total} samples  function"));
    }
    for function in report.top.iter().filter(|function| !has_own || function.samples > 0) {
        let total = function.inclusive.map(|total| percent(total, samples.samples));
        let total = total.map(|total| format!(" {total:>8}")).unwrap_or_default();
        let place = match (function.file.as_str(), function.line) {
            ("", _) => String::new(),
            (file, 0) => format!("  {}", text::name(file.as_bytes())),
            (file, line) => format!("  {}:{line}", text::name(file.as_bytes())),
        };
        note::say(format_args!(
            "{:>8}{total} {:>7}  {}{place}",
            percent(function.samples, samples.samples),
            function.samples,
            text::name(function.name.as_bytes())
        ));
    }
}

/// What the processes with jitted code did, most first.
fn activities(of: &Activities) -> Option<String> {
    let mut parts = [
        (of.jitted, "jitted code"),
        (of.interpreter, "interpreter"),
        (of.garbage_collector, "garbage collector"),
        (of.compiler, "compiler"),
        (of.kernel, "kernel"),
        (of.native, "other native code"),
    ];
    parts.sort_by_key(|&(samples, _)| std::cmp::Reverse(samples));
    let parts: Vec<String> = parts
        .iter()
        .filter(|&&(samples, _)| samples > 0)
        .map(|&(samples, what)| format!("{what} {}", percent(samples, of.samples)))
        .collect();
    (!parts.is_empty()).then(|| format!("time by activity: {}", parts.join(", ")))
}
