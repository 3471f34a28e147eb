//! `jitscribe report`: a recording as an HTML file, or as text.

mod html;
mod stdio;

use std::path::{Path, PathBuf};

use crate::{Error, Result, export};

/// Write a recording as one HTML file that needs no network: timeline, flame graph, source and assembly
///
/// The file shows functions, callers and callees for any span of time and any threads; source and
/// assembly side by side with their samples, and the inlined calls; every compilation of a function
/// over time, and how two of them differ; and what has no name, and why. It opens in any browser.
///
/// With --stdio, the functions and the call tree are printed as text instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe record -o run.data -- node app.js
  jitscribe report -i run.data --open

  # for a colleague, without sources
  jitscribe report -i run.data -o run.html --max-source 0

  # one function, 0.5 to 1.5 seconds after the first sample: append to the address
  #fn=render&t=0.5-1.5

  # in the terminal: functions and call tree; who calls the functions that take the time
  jitscribe report --stdio -i run.data
  jitscribe report --stdio --callers --percent-limit 2

  # the second half of one process, by time in functions and in what they called
  jitscribe report --stdio --comm node --time 50%,100% --sort total

  jitscribe report --stdio --json | jq -r '.top.functions[] | [.samples, .name] | @tsv'

docs/report.md describes the HTML report, docs/look.md the text.")]
pub struct Args {
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    input: PathBuf,
    /// Print the report as text on standard output
    #[arg(long)]
    stdio: bool,
    /// Serve the recording to the Firefox Profiler, with source and assembly, until Ctrl-C; prints the address to open
    #[arg(long, conflicts_with = "stdio")]
    firefox_server: bool,
    /// The port to serve at, on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT", requires = "firefox_server")]
    port: Option<u16>,
    /// A folder with sources to show that the recorded process is not known to be allowed to read
    #[arg(long, value_name = "DIR", conflicts_with = "stdio")]
    source_dir: Vec<PathBuf>,
    #[command(flatten)]
    html: html::HtmlArgs,
    #[command(flatten)]
    text: stdio::TextArgs,
}

/// Writes the recording `input` as an HTML file, with the sources in these folders.
pub fn write(input: &Path, source_dirs: &[PathBuf], output: &Path, force: bool) -> Result<()> {
    html::run(input, source_dirs, &html::HtmlArgs::to(output, force))
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.stdio {
        return stdio::run(&args.input, &args.text);
    }
    if args.text.selection.is_part() {
        return Err(Error::Usage(
            "all samples are shown, and selected in the page; these options need --stdio".into(),
        ));
    }
    if args.firefox_server {
        return export::serve_all(&args.input, &args.source_dir, args.port);
    }
    html::run(&args.input, &args.source_dir, &args.html)
}
