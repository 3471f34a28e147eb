//! A recording as an HTML file.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use jitscribe_inject::output::Output;
use profile_report::{BEGINNING, Options, Summary};

use super::open;
use crate::text::{self, Out, shell_word};
use crate::{Error, Result, note, recorded};

/// Write a recording as one HTML file that needs no network: timeline, flame graph, source and assembly
///
/// The file shows functions, callers and callees for any span of time and any threads; source and
/// assembly side by side with their samples, and the inlined calls; every compilation of a function
/// over time, and how two of them differ; and what has no name, and why. It opens in any browser.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe record -o run.data -- node app.js
  jitscribe report -i run.data --open

  # for a colleague, without sources
  jitscribe report -i run.data -o run.html --max-source 0

  # one function, 0.5 to 1.5 seconds after the first sample: append to the address
  #fn=render&t=0.5-1.5

docs/report.md describes what the report shows.")]
pub struct Args {
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    input: PathBuf,
    /// Where to write; - for standard output [default: report.html]. A report that is there is replaced
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "report.html",
        hide_default_value = true
    )]
    output: PathBuf,
    /// Open it in the browser
    #[arg(long)]
    open: bool,
    /// The most text of source files, in MiB; the most sampled files come first
    #[arg(long, value_name = "MIB", default_value_t = 32)]
    max_source: usize,
    /// The most instructions of machine code; the most sampled code comes first
    #[arg(long, value_name = "NUMBER", default_value_t = 500_000)]
    max_instructions: usize,
    /// Replace the output if it exists, whatever it is
    #[arg(short, long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let output = Some(args.output.as_path()).filter(|path| path.as_os_str() != "-");
    if args.open && output.is_none() {
        return Err(Error::Usage("--open needs a file: write it with -o FILE".into()));
    }
    if output.is_none() && text::is_terminal() {
        return Err(Error::Refused(
            "standard output is a terminal; write the report to a file with -o FILE".into(),
        ));
    }
    // Refused early, before work is spent on what may not be written.
    let replace = |path: &Path| args.force || is_report(path);
    let mut target = output.map(|path| Output::create(path, replace(path))).transpose()?;
    let believed = recorded::believed(&args.input);
    let mut recorded = recorded::read(&args.input, &believed)?;
    let mut options = Options::default();
    options.most_source_bytes = args.max_source.saturating_mul(1 << 20);
    options.most_instructions = args.max_instructions;
    let (profile, code) = (&recorded.profile, &mut recorded.code);
    let summary = match &mut target {
        Some(file) => {
            let mut out = BufWriter::with_capacity(1 << 16, file.file());
            let written = profile_report::write(profile, code, &options, &mut out);
            let flushed = written.and_then(|summary| out.flush().map(|()| summary));
            flushed.map_err(Error::file(&args.output))?
        }
        None => {
            let mut out = Out::new();
            let written = profile_report::write(profile, code, &options, &mut out);
            let summary = written.map_err(Error::Stdout)?;
            out.finish()?;
            summary
        }
    };
    if let Some(file) = target {
        file.finish()?;
    }
    let missing = profile.missing.iter().map(|missing| missing.samples).sum();
    say(args, &summary, missing, output);
    match output {
        Some(path) if args.open => open::in_browser(path),
        _ => Ok(()),
    }
}

/// Whether a file is a report, which may be replaced.
fn is_report(path: &Path) -> bool {
    // A symbolic link, a pipe or a device is none.
    if !path.symlink_metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let mut first = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut first));
    read.is_ok() && first == BEGINNING.as_bytes()
}

fn say(args: &Args, summary: &Summary, missing: u64, output: Option<&Path>) {
    let mut line = format!(
        "{}: {} samples; assembly of {} pieces of code, sources of {} files",
        text::path(&args.input),
        summary.samples,
        summary.listings,
        summary.sources
    );
    let left_out = summary.listings_left_out.saturating_add(summary.sources_left_out);
    if left_out > 0 {
        line.push_str(&format!("; {left_out} left out (--max-instructions, --max-source)"));
    }
    if missing > 0 {
        line.push_str(&format!(
            "; {missing} samples in files that cannot be looked into (-v lists them)"
        ));
    }
    note::say(line);
    let Some(output) = output else { return };
    let next = if args.open { String::new() } else { "; open it in a browser".to_owned() };
    let mebibytes = summary.bytes as f64 / f64::from(1 << 20);
    note::say(format_args!("written: {} ({mebibytes:.1} MiB){next}", shell_word(output)));
}
