//! `jitscribe inject`: brings what JITs wrote into what perf recorded.
//!
//! The work is done by the library [`jitscribe_inject`]. Here is what the command adds: its arguments, where files are
//! looked for and whose are believed, what is said, and perf's build-id cache.

mod cache;
mod findings;
mod huge;
pub mod json;
mod kept;
mod report;
mod stacks;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jitscribe_inject::{Destination, Injector, Recording, SearchPaths, SeenProcess, Warning};

use crate::files::{Believed, Named};
use crate::line_table::LineTable;
use crate::process::HeldFile;
use crate::sample_summary::SampleSummary;
use crate::source_lines::SourceLineArgs;
use crate::stage_bar::StageBar;
use crate::{Error, Result, console, descriptors, note, text};

pub use findings::{print_named, print_summary};
pub use jitscribe_inject::{Output, Report};
pub use json::print_json;
pub use kept::GONE;
pub use report::warn;

/// Add jitted code to a perf recording
///
/// Finds the jitdumps and perf maps of the recorded processes, writes their code as object files
/// (one per memory range and time span, not one per function), and copies the recording with these
/// files mapped where the code ran. perf report, annotate and script then show names, source lines,
/// assembly and call stacks.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  perf record -k mono -g -- node --perf-prof app.js
  jitscribe inject -i perf.data -o out.data
  perf report -i out.data

  # the dump was copied here from another machine
  jitscribe inject -i perf.data -o out.data --aux-dir ./from-production

  # a process in a container, whose dump contains another pid
  jitscribe inject -i perf.data -o out.data --jitdump 4711=/srv/app/jit-1.dump

  perf record -o - -- node --perf-prof app.js | jitscribe inject -i - -o out.data

The exit code is 3 if nothing was named: see jitscribe --help.")]
pub struct Args {
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub input: PathBuf,
    /// Where to write the new recording; - for standard output [default: INPUT.jitted]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A jitdump to apply, and its process [default: from its marker, header or name]
    #[arg(long, value_name = "[PID=]FILE")]
    pub jitdump: Vec<Named>,
    /// A perf map to apply, and its process [default: from its name]
    #[arg(long, value_name = "[PID=]FILE")]
    pub perf_map: Vec<Named>,
    /// A code log of V8 with inlined calls, for the jitdump of its process [default: isolate-*-PID-v8.log]
    #[arg(long, value_name = "[PID=]FILE")]
    pub v8_log: Vec<Named>,
    /// A folder with jitdumps and perf maps that were copied here from another machine
    #[arg(long, value_name = "DIR")]
    pub aux_dir: Vec<PathBuf>,
    /// Memory of the recorded processes, as record wrote it: memory.dump in the folder of --keep-raw
    #[arg(long, value_name = "FILE")]
    pub memory: Vec<PathBuf>,
    /// Leave samples without a name that are in code that nothing announces
    #[arg(long)]
    pub no_inferred_names: bool,
    /// Where to write the object files; perf looks for them there [default: OUTPUT.jit]
    #[arg(long, value_name = "DIR")]
    pub image_dir: Option<PathBuf>,
    /// Which lines to show if a dump has both
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub lines: LineTable,
    #[command(flatten)]
    pub sources: SourceLineArgs,
    /// Replace the output and the object files if they exist
    #[arg(short, long)]
    pub force: bool,
    /// Exit with 0 even if nothing was named
    #[arg(long)]
    pub allow_empty: bool,
    /// Also add the object files to perf's build-id cache (~/.debug)
    #[arg(long)]
    pub buildid_cache: bool,
    /// Print a report as JSON on standard output: docs/scripts.md describes its fields
    #[arg(long)]
    pub json: bool,
    /// The new name of a recording that is at the output's place.
    #[arg(skip)]
    pub keep_old: Option<PathBuf>,
    /// The users of processes, as they were when it was recorded.
    #[arg(skip)]
    pub users: BTreeMap<u32, u32>,
    /// Dumps of logs that were read from memory, and their processes.
    #[arg(skip)]
    pub logs: Vec<Named>,
    /// Processes that were followed while it was recorded.
    #[arg(skip)]
    pub processes: BTreeMap<u32, SeenProcess>,
    /// Files that were gone while they were recorded.
    #[arg(skip)]
    pub gone: Arc<Vec<HeldFile>>,
}

/// The largest recording whose functions are listed without being asked for: to read it takes longer than to write it, which must not be felt.
const LISTED_BYTES: u64 = 16 << 20;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let report = inject(args)?;
    report::say(&report);
    if let Some(output) = &report.output {
        if args.json {
            let summary = SampleSummary::read(output)?;
            match print_json(&json::Injected::new(&report, &summary)) {
                Err(error) if !error.is_broken_pipe() => return Err(error),
                _ => {}
            }
        } else if is_listed(&report, output) {
            match SampleSummary::read(output) {
                Ok(summary) => print_summary(&summary, report.samples.named),
                Err(error) => note::warning(error),
            }
        }
        report::say_next(&report, output);
    }
    if args.allow_empty { Ok(()) } else { check_named(&report) }
}

/// Whether the functions of a recording are listed: it has some, and is read quickly.
fn is_listed(report: &Report, output: &Path) -> bool {
    !console::is_quiet()
        && report.samples.named > 0
        && !report.has_stack_copies
        && output.metadata().is_ok_and(|it| it.is_file() && it.len() <= LISTED_BYTES)
}

/// Fails if no sample is in code that has a name, or was called by such code, though there is jitted code: samples are in it, or a file
/// that describes it was named or recorded, and cannot be used.
pub fn check_named(report: &Report) -> Result<()> {
    let samples = report.samples;
    let has_code = || {
        let mut sources = report.sources.iter();
        report.sources.is_empty() || sources.any(|source| source.codes > 0)
    };
    let is_lost = |warning: &Warning| {
        use Warning::{Empty, JitdumpMissing, NoJitdump, NoSuchProcess, NobodysMap};
        matches!(
            warning,
            Empty { .. }
                | JitdumpMissing { .. }
                | NoJitdump { .. }
                | NoSuchProcess { .. }
                | NobodysMap { .. }
        )
    };
    if samples.jitted() == 0 && has_code() && !report.warnings.iter().any(is_lost) {
        return Ok(());
    }
    // Which code is on stacks that were copied is not known before they are unwound, nor that in a trace before it is decoded.
    let may_be_named = (report.has_stack_copies || report.has_trace) && !report.images.is_empty();
    if samples.named == 0 && samples.through == 0 && !may_be_named {
        Err(Error::NothingNamed)
    } else {
        Ok(())
    }
}

/// Injects, and tells what was done.
pub fn inject(args: &Args) -> Result<Report> {
    // Each dump is kept open.
    descriptors::raise();
    let output = args.output.clone().unwrap_or_else(|| with_suffix(&args.input, ".jitted"));
    let to_stdout = output.as_os_str() == "-";
    if to_stdout && args.json {
        return Err(Error::Refused("--json and -o - cannot share standard output".into()));
    }
    if to_stdout {
        text::refuse_terminal("recording")?;
    }
    let input = Recording::input(&args.input)?;
    // Refused early, before work is spent on what may not be written.
    let destination = if to_stdout {
        Destination::Stream(Box::new(text::Out::new()))
    } else {
        Destination::File(match &args.keep_old {
            Some(old) => Output::keeping(&output, old.file_name().unwrap_or_default())?,
            None => Output::create(&output, args.force)?,
        })
    };

    let bar = StageBar::new(&args.input, "writing the recording");
    let progress = |progress| bar.show(progress);
    let images = || with_suffix(&output, ".jit");
    let images = args.image_dir.clone().unwrap_or_else(images);
    let kept = kept::keep(&args.gone, &images, args.force)?;
    let mut recording = Recording::read_with(&args.input, input, &kept.files, &progress)?;
    let recorded_here = recording.is_of_this_machine();
    let path = text::named_file(&args.input);
    let believed = Believed::about(path, &args.users, recorded_here, &args.aux_dir);
    let injector = Injector::new(search_paths(args, recorded_here))
        .files(&believed)
        .image_folder(args.image_dir.clone())
        .replace(args.force)
        .infer_names(!args.no_inferred_names)
        .lines(args.lines.into())
        .sources((&args.sources).into())
        .progress(&progress);
    let mut report = injector.inject(&mut recording, destination)?;
    bar.finish();
    report::print_details(&report);

    let images = report.images.iter().map(|image| (image.path.as_path(), image.pid));
    let mut warnings = Vec::new();
    if args.buildid_cache {
        let paths: Vec<&Path> = images.map(|(path, _)| path).collect();
        cache::add(&paths, &mut warnings);
    } else if recorded_here {
        cache::add_unreachable(images, &mut warnings);
    }
    report.warnings.extend(warnings.into_iter().map(jitscribe_inject::Warning::Other));
    report.kept = kept.paths;
    Ok(report)
}

fn search_paths(args: &Args, recorded_here: bool) -> SearchPaths {
    let beside = match args.input.parent() {
        _ if args.input.as_os_str() == "-" => None,
        Some(folder) if !folder.as_os_str().is_empty() => Some(folder.to_owned()),
        _ => Some(PathBuf::from(".")),
    };
    SearchPaths {
        jitdumps: args.jitdump.clone(),
        logs: args.logs.clone(),
        perf_maps: args.perf_map.clone(),
        v8_logs: args.v8_log.clone(),
        folders: args.aux_dir.clone(),
        memory: args.memory.clone(),
        beside,
        recorded_here,
        processes: args.processes.clone(),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
