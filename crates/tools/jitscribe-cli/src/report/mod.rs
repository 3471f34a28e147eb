//! `jitscribe report`: a recording as an HTML file, or as text.

mod html;
mod open;
mod stdio;

use std::path::PathBuf;

use crate::{Error, Result};

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
    #[command(flatten)]
    html: html::HtmlArgs,
    #[command(flatten)]
    text: stdio::TextArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.stdio {
        return stdio::run(&args.input, &args.text);
    }
    if args.text.selection.is_part() {
        return Err(Error::Usage(
            "the HTML report has all samples, which are selected in it; these options need --stdio"
                .into(),
        ));
    }
    html::run(&args.input, &args.html)
}
