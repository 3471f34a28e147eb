//! `jitscribe diff`: compares two recordings, function by function.

use std::path::PathBuf;

use clap::ValueEnum;
use profile::{Compared, Comparison, Measure, Profile, SampleRow};
use profile_report::DifferenceSummary;
use profile_text::Difference;

use crate::html::Html;
use crate::selection::SelectionArgs;
use crate::{Error, Result, recorded, text, view};

/// Compare two recordings, function by function
///
/// Functions are the same if their names, files and lines are, not by address, process or compiler tier. Versions, hashes and numbers that runtimes
/// make up are left out of names and paths. Numbers of samples differ between any two runs: a difference is shown if it is unlikely (below 5 %) to be
/// chance, by an exact test that takes into account how many functions were compared. The test knows the chance of sampling only: what differs
/// between two runs of one program by itself, such as the moment of a compilation, it takes for a change. Record longer, and compare two
/// recordings of the same version to see how large that is.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe record -o before.data -- node app.js
  jitscribe record -o after.data -- node app.js --new
  jitscribe diff before.data after.data

  # both did the same work: which functions took longer
  jitscribe diff --by time before.data after.data

  # with what functions called, and with what may be chance
  jitscribe diff --total --all before.data after.data

  # a flame graph of both and a table, as one HTML file that needs no network
  jitscribe diff --html --open before.data after.data

  jitscribe diff --json before.data after.data | jq '.functions[] | select(.verdict == \"more\")'")]
pub struct Args {
    /// The first recording
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The second recording
    #[arg(value_name = "AFTER")]
    after: PathBuf,
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
    #[command(flatten)]
    html: HtmlArgs,
    // The last one: its heading is for all options behind it.
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
    let files = [&args.before, &args.after].map(|path| recorded::believed(path));
    let [files_before, files_after] = &files;
    let before = recorded::read(&args.before, files_before)?.profile;
    let after = recorded::read(&args.after, files_after)?.profile;
    let selections = [args.selection.of(&before)?, args.selection.of(&after)?];
    let [selection_before, selection_after] = &selections;
    let measure = match args.by {
        By::Share => Measure::Share,
        By::Time => Measure::Time(rate(&after)? / rate(&before)?),
    };
    let profiles = [&before, &after];
    if let Some(html) = html {
        let selections = [selection_before, selection_after];
        let difference = profile_report::Difference { profiles, selections, measure };
        return html.write(
            |mut out| profile_report::write_difference(&difference, &mut out),
            |summary| (described(args, summary), summary.bytes),
        );
    }
    let compared = if args.total { Compared::Total } else { Compared::Own };
    let samples: [&mut dyn Iterator<Item = SampleRow>; 2] =
        [&mut selection_before.of(&before), &mut selection_after.of(&after)];
    let comparison = Comparison::of(profiles, samples, compared, measure);
    let difference = Difference::of(profiles, &comparison, compared, measure);
    if args.json {
        return view::print_json("diff", &[&args.before, &args.after], difference);
    }
    view::print(&difference.lines(args.all), !args.no_pager)
}

/// What is in the HTML file.
fn described(args: &Args, summary: &DifferenceSummary) -> String {
    let [before, after] = summary.samples;
    format!(
        "{} ({before} samples), {} ({after} samples): {} functions with samples of their own, {} of them changed by more than chance",
        text::path(&args.before),
        text::path(&args.after),
        summary.functions,
        summary.changed
    )
}

/// How many samples a second of work gets.
fn rate(profile: &Profile) -> Result<f64> {
    let rate = profile.about.frequency.filter(|rate| *rate > 0);
    // Frequencies are far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    rate.map(|rate| rate as f64).ok_or_else(|| {
        Error::Refused(
            "--by time: a recording was not made by frequency (-F), so that its samples are no measure of time; use --by share"
                .into(),
        )
    })
}
