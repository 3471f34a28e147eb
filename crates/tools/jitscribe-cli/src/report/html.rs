//! The report as an HTML file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use profile::Profile;
use profile_report::{BEGINNING, Options, Summary};

use crate::text::{self, shell_word};
use crate::view::Target;
use crate::{Error, Result, note, recorded};

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
pub fn run(input: &Path, args: &HtmlArgs) -> Result<()> {
    let output = text::named_file(&args.output);
    if args.open && output.is_none() {
        return Err(Error::Usage("--open needs a file: write it with -o FILE".into()));
    }
    if output.is_none() {
        text::refuse_terminal("report")?;
    }
    let target = Target::open(output, args.force || output.is_some_and(is_report))?;
    let believed = recorded::believed(input);
    let mut recorded = recorded::read(input, &believed)?;
    let mut options = Options::default();
    options.most_source_bytes = args.max_source.saturating_mul(1 << 20);
    options.most_instructions = args.max_instructions;
    let (profile, code) = (&recorded.profile, &mut recorded.code);
    let summary =
        target.write(|mut out| profile_report::write(profile, code, &options, &mut out))?;
    say(input, args, &summary, profile, output);
    match output {
        Some(path) if args.open => super::open::in_browser(path),
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

fn say(input: &Path, args: &HtmlArgs, summary: &Summary, profile: &Profile, output: Option<&Path>) {
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
    note::say(line);
    let Some(output) = output else { return };
    let next = if args.open { String::new() } else { "; open it in a browser".to_owned() };
    let mebibytes = summary.bytes as f64 / f64::from(1 << 20);
    note::say(format_args!("written: {} ({mebibytes:.1} MiB){next}", shell_word(output)));
}
