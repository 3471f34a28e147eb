//! The report as an HTML file.

use std::path::{Path, PathBuf};

use profile::Profile;
use profile_report::{Options, Summary};

use crate::html::Html;
use crate::{Result, heap_image, recorded, text, unnamed};

/// The most text of source files, in MiB, unless the user says otherwise.
const SOURCE: usize = 32;
/// The most instructions, unless the user says otherwise.
const INSTRUCTIONS: usize = 500_000;

/// The options with which no HTML is written.
const NOT_HTML: [&str; 2] = ["stdio", "firefox_server"];

/// The options of the HTML report.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "HTML")]
pub struct HtmlArgs {
    /// Where to write; - for standard output [default: report.html]. A report that is there is replaced
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "report.html",
        hide_default_value = true,
        conflicts_with_all = NOT_HTML
    )]
    output: PathBuf,
    /// Open it in the browser
    #[arg(long, conflicts_with_all = NOT_HTML)]
    open: bool,
    /// The most text of source files, in MiB; the most sampled files come first
    #[arg(long, value_name = "MIB", default_value_t = SOURCE, conflicts_with_all = NOT_HTML)]
    max_source: usize,
    /// The most instructions of machine code; the most sampled code comes first
    #[arg(long, value_name = "NUMBER", default_value_t = INSTRUCTIONS, conflicts_with_all = NOT_HTML)]
    max_instructions: usize,
    /// Replace the output if it exists, whatever it is
    #[arg(short, long, conflicts_with_all = NOT_HTML)]
    force: bool,
}

impl HtmlArgs {
    /// A report at this path. With `force`, anything that is there is replaced.
    pub fn to(output: &Path, force: bool) -> Self {
        let (max_source, max_instructions) = (SOURCE, INSTRUCTIONS);
        Self { output: output.to_owned(), open: false, max_source, max_instructions, force }
    }
}

/// Writes the report.
pub fn run(input: &Path, source_dirs: &[PathBuf], args: &HtmlArgs) -> Result<()> {
    let html = Html::create(&args.output, args.open, args.force)?;
    let believed = recorded::believed(input);
    let mut recorded = recorded::read_with_sources(input, &believed, source_dirs)?;
    let mut options = Options::default();
    options.most_source_bytes = args.max_source.saturating_mul(1 << 20);
    options.most_instructions = args.max_instructions;
    options.unnamed = unnamed::lines_of_profile(&recorded);
    options.unnamed.extend(heap_image::lines(&recorded));
    let (profile, code) = (&recorded.profile, &mut recorded.code);
    html.write(
        |mut out| profile_report::write(profile, code, &options, &mut out),
        |summary| (described(input, summary, profile), summary.bytes),
    )?;
    recorded::warn_of_withheld(&recorded.code);
    Ok(())
}

fn described(input: &Path, summary: &Summary, profile: &Profile) -> String {
    let mut line = format!(
        "{}: {} samples; assembly of {} pieces of code, sources of {} files",
        text::path(input),
        summary.samples,
        summary.listings,
        summary.sources
    );
    let left_out = summary.listings_left_out.saturating_add(summary.sources_left_out);
    if left_out > 0 {
        line.push_str(&format!("; {left_out} left out (--max-instructions, --max-source)"));
    }
    line.push_str(&recorded::missing(profile));
    line
}
