//! `jitscribe callgrind`: names, lines and calls for the jitted code in a profile.
//!
//! The crate `callgrind` copies the profile and takes what was unknown apart; [`map`] tells it of the code, [`image`]
//! writes the object file that KCachegrind disassembles, [`report`] says what was done.

mod image;
mod map;
mod report;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use callgrind::{Line, Lines, Summary};

use crate::files::open_regular;
use crate::known::{KnownCode, SourceArgs, nothing_known};
use crate::output::Output;
use crate::{Error, Result, note};

use map::Map;
pub use report::{Event, Report};

/// Name jitted code in a profile of callgrind's
///
/// callgrind knows no jitted code: it shows addresses, a function in as many pieces as it is entered at
/// places, and functions that jump to one another as one. This copies the profile with functions, calls and
/// costs as callgrind would have counted them, had it known; with source lines for every instruction, and an
/// object file with the code at its addresses, which KCachegrind disassembles. Costs stay what they were to
/// the last instruction.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  MVM_JIT_PERF_MAP=1 valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes rakudo-m app.raku
  jitscribe callgrind callgrind.out.4711
  kcachegrind callgrind.out.4711.jitted

  # all that callgrind_annotate can show of callers and callees
  callgrind_annotate --tree=both callgrind.out.4711.jitted

Without --dump-instr=yes whole pieces are named and nothing is taken apart; without --collect-jumps=yes it
is a guess who jumped to a function.")]
pub struct Args {
    /// The profile: callgrind.out.PID
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Where to write the new one, - for standard output; the object file lies beside it as OUT.so
    /// [default: FILE.jitted]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Replace the output and the object file if they exist
    #[arg(short, long)]
    pub force: bool,
    /// Print what was done as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let report = rewrite(args)?;
    report.say();
    if args.json {
        report.print_json()?;
    }
    Ok(())
}

/// Rewrites the profile, and tells what was done.
pub fn rewrite(args: &Args) -> Result<Report> {
    let output = output_path(args);
    let to_stdout = output.as_os_str() == "-";
    if to_stdout && args.json {
        return Err(Error::Refused("--json and -o - cannot share standard output".into()));
    }
    // Refused early, before work is spent on what may not be written.
    let mut target = if to_stdout { None } else { Some(Output::create(&output, args.force)?) };
    let image = image::path_for(if to_stdout { &args.input } else { &output })?;

    let input = open_regular(&args.input).map_err(Error::file(&args.input))?;
    let pid = pid_of(&input, &args.input)?;
    let mut warnings = Vec::new();
    let known = KnownCode::of(&args.sources, pid, &args.input, &mut warnings)?;
    if known.is_empty() {
        warnings.push(nothing_known(pid));
    }
    let sources = known.sources().to_vec();
    let mut map = Map::new(known, &image);

    let size = input.metadata().map_or(0, |file| file.len());
    let input = File::open(&args.input).map_err(Error::file(&args.input))?;
    let bar = note::progress("naming", size);
    let reader = bar.wrap_read(input);
    let done = match &mut target {
        Some(file) => callgrind::rewrite(reader, file.file(), &mut map),
        None => callgrind::rewrite(reader, std::io::stdout().lock(), &mut map),
    };
    let summary = done.map_err(|error| match error {
        callgrind::Error::Read(source) => Error::File { path: args.input.clone(), source },
        callgrind::Error::Write(source) if to_stdout => Error::Stdout(source),
        callgrind::Error::Write(source) => Error::File { path: output.clone(), source },
        damaged => Error::format(&args.input)(damaged),
    })?;
    bar.finish_and_clear();
    let (mut known, doubtful, has_bytes) = map.finish()?;
    if has_bytes {
        image::write(&mut known, &image, args.force)?;
    }
    if let Some(file) = target {
        file.finish()?;
    }
    let has_named = summary.named.first().is_some_and(|&named| named > 0);
    let is_done = known.is_empty() || args.sources.named_at_once && !has_named;
    warn(&summary, doubtful, has_bytes, is_done, &mut warnings);
    Ok(Report {
        input: args.input.clone(),
        output: (!to_stdout).then_some(output),
        image: has_bytes.then_some(image),
        pid,
        events: events(&summary),
        contexts: summary.contexts,
        functions: summary.functions,
        entered_by_jump: summary.entered_by_jump,
        parts: summary.parts,
        has_instructions: summary.has_instructions,
        has_jumps: summary.has_jumps,
        sources,
        warnings,
    })
}

fn output_path(args: &Args) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let mut name = OsString::from(&args.input);
        name.push(".jitted");
        name.into()
    })
}

fn events(summary: &Summary) -> Vec<Event> {
    let at = |costs: &[u64], index: usize| costs.get(index).copied().unwrap_or(0);
    let event = |(index, name): (usize, &String)| Event {
        name: name.clone(),
        total: at(&summary.total, index),
        unknown: at(&summary.unknown, index),
        named: at(&summary.named, index),
    };
    summary.events.iter().enumerate().map(event).collect()
}

/// Says what could not be done, and what would have made it possible.
fn warn(
    summary: &Summary,
    doubtful: usize,
    has_bytes: bool,
    nothing_to_do: bool,
    warnings: &mut Vec<String>,
) {
    let first = |costs: &[u64]| costs.first().copied().unwrap_or(0);
    let (unknown, named) = (first(&summary.unknown), first(&summary.named));
    if summary.is_cut_off {
        warnings.push("the profile ends in the middle of a line: it is not whole".into());
    }
    if nothing_to_do {
        return;
    }
    if unknown == 0 {
        warnings.push(
            "callgrind knew all code in the profile: nothing was to be named. Did the JIT run? Was it \
             announced while it ran under valgrind?"
                .into(),
        );
        return;
    }
    if named == 0 {
        warnings.push(
            "none of the unknown code in the profile is where the files tell of code: are they of the \
             same run?"
                .into(),
        );
        return;
    }
    if !summary.has_instructions {
        warnings.push(
            "the profile does not tell instructions apart: code was named by where it is entered, has no \
             lines, and counts what it jumps to as its own. valgrind --tool=callgrind --dump-instr=yes \
             --collect-jumps=yes makes the difference"
                .into(),
        );
    } else if !summary.has_jumps {
        warnings.push(
            "the profile does not tell of jumps: costs are their functions', but who jumped to a function \
             is a guess. valgrind --tool=callgrind --collect-jumps=yes makes the difference"
                .into(),
        );
    }
    if doubtful > 0 {
        warnings.push(format!(
            "{doubtful} of the functions are where other code was at other times; what was there last is \
             named"
        ));
    }
    if !has_bytes && summary.has_instructions {
        warnings.push(
            "nobody wrote the code's bytes down, so KCachegrind can show no assembly of it; a jitdump has \
             them, a perf map has not"
                .into(),
        );
    }
}

/// The process that a profile is of, from its header.
fn pid_of(input: &File, path: &Path) -> Result<Option<u32>> {
    // No header is longer.
    let mut lines = Lines::new(input.take(1 << 20));
    let failed = |error: callgrind::Error| match error {
        callgrind::Error::Read(source) => Error::File { path: path.to_owned(), source },
        damaged => Error::format(path)(damaged),
    };
    while let Some(raw) = lines.next_line().map_err(failed)? {
        let line = callgrind::parse(raw.bytes).map_err(raw.damaged()).map_err(failed)?;
        match line {
            Line::Header { key: b"pid", value } => {
                return Ok(std::str::from_utf8(value).ok().and_then(|pid| pid.parse().ok()));
            }
            Line::Blank | Line::Header { .. } => {}
            _ => break,
        }
    }
    Ok(None)
}
