//! `jitscribe diff`: compares two recordings, or several of each side, function by function.

mod side;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use profile::{Compared, Comparison, Measure, SampleRow};
use profile_report::DifferenceSummary;
use profile_text::Difference;

use crate::html::Html;
use crate::selection::SelectionArgs;
use crate::{Result, text, view};
use side::Side;

/// Compare two recordings, function by function
///
/// Functions are the same if their names, files and lines are, not by address, process or compiler tier. Versions, hashes and numbers that runtimes
/// make up are left out of names and paths. Numbers of samples differ between any two runs: a difference is shown if it is unlikely (below 5 %) to be
/// chance, by an exact test that takes into account how many functions were compared. With two recordings, the test knows the chance of sampling only:
/// what differs between two runs of one program by itself, such as the moment of a compilation, it takes for a change. With several recordings a
/// side (--before, --after; three or more are useful), a difference also has to be larger than runs of one side differ.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe record -o before.data -- node app.js
  jitscribe record -o after.data -- node app.js --new
  jitscribe diff before.data after.data

  # several runs of each, so that differences between runs of one program are not taken for a change
  jitscribe diff --before before-1.data before-2.data before-3.data --after after-1.data after-2.data after-3.data

  # both did the same work: which functions took longer
  jitscribe diff --by time before.data after.data

  # with what functions called, and with what may be chance
  jitscribe diff --total --all before.data after.data

  # a flame graph of both and a table, as one HTML file that needs no network
  jitscribe diff --html --open before.data after.data

  jitscribe diff --json before.data after.data | jq '.functions[] | select(.verdict == \"more\")'")]
pub struct Args {
    /// The first recording
    #[arg(value_name = "BEFORE", required_unless_present = "befores")]
    before: Option<PathBuf>,
    /// The second recording
    #[arg(value_name = "AFTER", required_unless_present = "befores")]
    after: Option<PathBuf>,
    /// Recordings of the first side, one a run. Needs --after
    #[arg(
        long = "before",
        value_name = "FILE",
        num_args = 1..,
        requires = "afters",
        conflicts_with_all = ["before", "after"]
    )]
    befores: Vec<PathBuf>,
    /// Recordings of the second side, one a run. Needs --before
    #[arg(long = "after", value_name = "FILE", num_args = 1.., requires = "befores")]
    afters: Vec<PathBuf>,
    /// Compare samples in functions or in what they called
    #[arg(long)]
    total: bool,
    /// What is compared
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    by: By,
    /// Show functions too whose difference may be chance
    #[arg(long)]
    all: bool,
    /// Print JSON with all functions: docs/look.md describes its fields
    #[arg(long)]
    json: bool,
    /// Do not use a pager
    #[arg(long)]
    no_pager: bool,
    // The last ones: a heading is for all options behind it.
    #[command(flatten)]
    html: HtmlArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// The options with which text is printed, and no HTML is written.
const TEXT: [&str; 4] = ["total", "all", "json", "no_pager"];

/// The options of the HTML file.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "HTML")]
struct HtmlArgs {
    /// Write one HTML file that needs no network: a flame graph of both recordings in the colours of the difference, and the table of functions
    #[arg(long, conflicts_with_all = TEXT)]
    html: bool,
    /// Where to write; - for standard output [default: diff.html]. A comparison or a report that is there is replaced
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "diff.html",
        hide_default_value = true,
        requires = "html"
    )]
    output: PathBuf,
    /// Open it in the browser
    #[arg(long, requires = "html")]
    open: bool,
    /// Replace the output if it exists, whatever it is
    #[arg(short, long, requires = "html")]
    force: bool,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    /// The part of all samples: the recordings may have any length
    #[default]
    Share,
    /// The time, of recordings of the same work
    Time,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let HtmlArgs { html, ref output, open, force } = args.html;
    // Refused early, before work is spent on what may not be written.
    let html = html.then(|| Html::create(output, open, force)).transpose()?;
    let [before, after] = [
        Side::read(Args::side(args.before.as_ref(), &args.befores), &args.selection)?,
        Side::read(Args::side(args.after.as_ref(), &args.afters), &args.selection)?,
    ];
    let runs = [before.runs(), after.runs()];
    let activities = [before.activities, after.activities];
    let measure = match args.by {
        By::Share => Measure::Share,
        // What a sample stands for, in all runs of a side together.
        By::Time => Measure::Time(after.rate()? / before.rate()?),
    };
    let profiles = [&before.profile, &after.profile];
    let recordings: Vec<&Path> =
        before.recordings.iter().chain(&after.recordings).copied().collect();
    if let Some(html) = html {
        let selections = [&before.selection, &after.selection];
        let difference =
            profile_report::Difference { profiles, selections, activities, runs, measure };
        return html.write(
            |mut out| profile_report::write_difference(&difference, &mut out),
            |summary| (described([&before, &after], summary), summary.bytes),
        );
    }
    let compared = if args.total { Compared::Total } else { Compared::Own };
    let samples: [&mut dyn Iterator<Item = SampleRow>; 2] =
        [&mut before.selection.of(&before.profile), &mut after.selection.of(&after.profile)];
    let comparison = Comparison::of_runs(profiles, samples, runs, compared, measure);
    let difference = Difference::of(profiles, activities, &comparison, compared, measure);
    if args.json {
        return view::print_json("diff", &recordings, difference);
    }
    view::print(&difference.lines(args.all), !args.no_pager)
}

impl Args {
    /// The recordings of a side, of which there is one, or several by an option.
    fn side<'a>(one: Option<&'a PathBuf>, several: &'a [PathBuf]) -> Vec<&'a Path> {
        one.into_iter().chain(several).map(PathBuf::as_path).collect()
    }
}

/// What is in the HTML file.
fn described(sides: [&Side<'_>; 2], summary: &DifferenceSummary) -> String {
    let [before, after] = summary.samples;
    let names = sides.map(|side| {
        let names: Vec<String> =
            side.recordings.iter().map(|path| text::path(path).to_string()).collect();
        names.join(", ")
    });
    let [name_before, name_after] = names;
    format!(
        "{name_before} ({before} samples), {name_after} ({after} samples): {} functions with samples of their own, {} of them changed by more than chance",
        summary.functions, summary.changed
    )
}
