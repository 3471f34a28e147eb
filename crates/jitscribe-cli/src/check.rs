//! `jitscribe check`: what is wrong with a jitdump or a perf map, what that costs, how to mend it.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dump::input::{Format, Input};
use crate::{Error, Result, note};

/// Say what is wrong with jitdumps and perf maps, what it costs, and how to mend it
///
/// Each rule that a file breaks is told once: where it is broken first, how often, what that costs
/// the file's users in which tool, and how the JIT that wrote it should mend it. The exit code is
/// 1 if there is an error in any file; warnings and notes alone leave it 0.
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

JSON: one object a line and file: file, format (jitdump|perf map), codes, errors, warnings, notes
(how many rules of each severity are broken), findings. A finding has rule, severity
(error|warning|note), count, places (the first few: offset in bytes, and in a perf map the line
from 1), what, cost, mend. A file that cannot be read has file and unreadable (the cause) alone."
)]
pub struct Args {
    /// The jitdumps and perf maps, told apart by their content; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// One JSON object a file, for programs (see --help for the fields)
    #[arg(long)]
    json: bool,
}

/// Does what the arguments say.
pub fn run(args: &Args) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut good = true;
    for path in &args.files {
        match check(path) {
            Ok(report) => {
                good &= report.errors == 0;
                if args.json {
                    print_json(&mut out, &report)?;
                } else {
                    print(&mut out, &report).map_err(Error::Stdout)?;
                }
            }
            // One bad file does not keep us from the others.
            Err(error) => {
                good = false;
                if args.json {
                    let file = path.to_string_lossy();
                    let unreadable = error.to_string();
                    print_json(&mut out, &Unreadable { file: &file, unreadable: &unreadable })?;
                }
                note::error(&error);
            }
        }
    }
    out.flush().map_err(Error::Stdout)?;
    if good { Ok(()) } else { Err(Error::Reported) }
}

/// What was found in one file, of either format.
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
    mend: &'static str,
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
        mend: finding.mend,
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
        mend: finding.mend,
    });
    (report.entries, findings.collect())
}

fn print_json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(|error| Error::Stdout(error.into()))?;
    out.write_all(b"\n").map_err(Error::Stdout)
}

fn print(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let Report { file, format, codes, errors, warnings, notes, findings } = report;
    let codes = counted(*codes, "code");
    if findings.is_empty() {
        return writeln!(out, "{file}: {format}, {codes}: nothing is wrong");
    }
    let count = |count: usize, what| counted(count as u64, what);
    let (errors, warnings) = (count(*errors, "error"), count(*warnings, "warning"));
    let notes = count(*notes, "note");
    writeln!(out, "{file}: {format}, {codes}: {errors}, {warnings}, {notes}")?;
    for finding in findings {
        writeln!(out, "  {}: {} ({})", finding.severity, finding.rule, times(finding.count))?;
        if let Some(first) = finding.places.first() {
            writeln!(out, "    {}: {}", told(first), finding.what)?;
        }
        let others: Vec<_> = finding.places.iter().skip(1).map(told).collect();
        if !others.is_empty() {
            let more = finding.count > finding.places.len() as u64;
            writeln!(out, "    also {}{}", others.join(", "), if more { ", …" } else { "" })?;
        }
        writeln!(out, "    cost: {}", finding.cost)?;
        writeln!(out, "    mend: {}", finding.mend)?;
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
