//! `jitscribe check`: reports what is wrong with a jitdump or a perf map, what that costs, and how to fix it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dump::input::{Format, Input};
use crate::text::{self, Out};
use crate::{Error, Result, note};

/// Check jitdumps and perf maps: what is wrong, what that costs, and how to fix it
///
/// Each broken rule is reported once per file: where it is broken first, how often, what that costs the
/// file's users in which tool, and how the JIT that wrote the file should fix it. The exit code is
/// 1 if any file has an error or cannot be read; warnings and notes alone leave it 0.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "EXAMPLES:
  jitscribe check jit-4711.dump /tmp/perf-4711.map
  my-jit --dump - | jitscribe check -
  jitscribe check --json *.dump | jq -r '.findings[] | select(.severity == \"error\") | .rule'",
    after_long_help = "EXAMPLES:
  jitscribe check jit-4711.dump /tmp/perf-4711.map
  my-jit --dump - | jitscribe check -
  jitscribe check --json *.dump | jq -r '.findings[] | select(.severity == \"error\") | .rule'

JSON: one object per file, one per line: file, format (jitdump|perf map), codes, errors, warnings,
notes (how many rules of each severity are broken), findings. A finding has rule, severity
(error|warning|note), count, places (the first few: offset in bytes, and in a perf map the line
from 1), what, cost, mend (the fix). A file that cannot be read has only file and unreadable (the cause)."
)]
pub struct Args {
    /// Jitdumps and perf maps, recognized by their content; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Print one JSON object per file (see --help for the fields)
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let mut out = Out::new();
    let mut good = true;
    for path in &args.files {
        match check(path) {
            Ok(report) => {
                good &= report.errors == 0;
                if args.json {
                    out.json(&report)?;
                } else {
                    print(&mut out, &report)?;
                }
            }
            // Go on with the other files.
            Err(error) => {
                good = false;
                if args.json {
                    let file = path.to_string_lossy();
                    let unreadable = error.to_string();
                    out.json(&Unreadable { file: &file, unreadable: &unreadable })?;
                }
                note::error(&error);
            }
        }
    }
    out.finish()?;
    if good { Ok(()) } else { Err(Error::Reported) }
}

/// The findings in one file of either format.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    format: &'static str,
    codes: u64,
    errors: usize,
    warnings: usize,
    notes: usize,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Finding {
    rule: &'static str,
    severity: String,
    count: u64,
    places: Vec<Place>,
    what: String,
    cost: &'static str,
    /// Under the name that the first readers of the JSON know.
    #[serde(rename = "mend")]
    fix: &'static str,
}

#[derive(Debug, Serialize)]
struct Place {
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Unreadable<'a> {
    file: &'a str,
    unreadable: &'a str,
}

fn check(path: &Path) -> Result<Report> {
    let input = Input::read(path)?;
    let format = input.format()?;
    let (codes, findings) = match format {
        Format::Jitdump => check_jitdump(&input),
        Format::PerfMap => check_perf_map(&input),
    };
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    Ok(Report {
        file: input.name().to_string_lossy().into_owned(),
        format: format.name(),
        codes,
        errors: count("error"),
        warnings: count("warning"),
        notes: count("note"),
        findings,
    })
}

fn check_jitdump(input: &Input) -> (u64, Vec<Finding>) {
    let report = match input.file_name() {
        Some(name) => jitdump::check::check_named(name, input.bytes()),
        None => jitdump::check::check(input.bytes()),
    };
    let findings = report.findings.into_iter().map(|finding| Finding {
        rule: finding.rule,
        severity: finding.severity.to_string(),
        count: finding.count,
        places: finding.offsets.iter().map(|&offset| Place { offset, line: None }).collect(),
        what: finding.what,
        cost: finding.cost,
        fix: finding.fix,
    });
    (report.loads, findings.collect())
}

fn check_perf_map(input: &Input) -> (u64, Vec<Finding>) {
    let report = perf_map::check::check(input.bytes());
    let place =
        |place: &perf_map::check::Place| Place { offset: place.offset, line: Some(place.line) };
    let findings = report.findings.into_iter().map(|finding| Finding {
        rule: finding.rule,
        severity: finding.severity.to_string(),
        count: finding.count,
        places: finding.places.iter().map(place).collect(),
        what: finding.what,
        cost: finding.cost,
        fix: finding.fix,
    });
    (report.entries, findings.collect())
}

fn print(out: &mut Out, report: &Report) -> Result<()> {
    let Report { file, format, codes, errors, warnings, notes, findings } = report;
    let (file, codes) = (text::said(file), counted(*codes, "code"));
    if findings.is_empty() {
        return out.line(format_args!("{file}: {format}, {codes}: no problems found"));
    }
    let count = |count: usize, what| counted(count as u64, what);
    let (errors, warnings) = (count(*errors, "error"), count(*warnings, "warning"));
    let notes = count(*notes, "note");
    out.line(format_args!("{file}: {format}, {codes}: {errors}, {warnings}, {notes}"))?;
    for finding in findings {
        out.line(format_args!(
            "  {}: {} ({})",
            finding.severity,
            finding.rule,
            times(finding.count)
        ))?;
        if let Some(first) = finding.places.first() {
            out.line(format_args!("    {}: {}", told(first), finding.what))?;
        }
        let others: Vec<_> = finding.places.iter().skip(1).map(told).collect();
        if !others.is_empty() {
            let more = finding.count > finding.places.len() as u64;
            out.line(format_args!(
                "    also {}{}",
                others.join(", "),
                if more { ", …" } else { "" }
            ))?;
        }
        out.line(format_args!("    cost: {}", finding.cost))?;
        out.line(format_args!("    fix: {}", finding.fix))?;
    }
    Ok(())
}

fn told(place: &Place) -> String {
    match place.line {
        Some(line) => format!("line {line} (offset {:#x})", place.offset),
        None => format!("offset {:#x}", place.offset),
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
