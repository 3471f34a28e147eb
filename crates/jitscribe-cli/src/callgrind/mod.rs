//! `jitscribe callgrind`: names, lines and calls for the jitted code in a profile.
//!
//! The crate `callgrind` copies the profile and takes what was unknown apart; [`map`] tells it of the code, [`image`]
//! writes the object file that KCachegrind disassembles, [`report`] says what was done.

mod image;
mod map;
mod report;

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use callgrind::{Line, Lines, Summary};

use crate::files::open_regular;
use crate::known::{KnownCode, SourceArgs, nothing_known};
use crate::output::Output;
use crate::{Error, Result, note};

use map::Map;
pub use report::Report;

/// Within this many bytes the header has told the process id.
const HEAD: u64 = 1 << 18;

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

  # the same through a pipe; the object file is callgrind.out.4711.so
  zstdcat callgrind.out.4711.zst | jitscribe callgrind - > named.out

  # all that callgrind_annotate can show of callers and callees
  callgrind_annotate --tree=both callgrind.out.4711.jitted

Without --dump-instr=yes whole pieces are named and nothing is taken apart; without --collect-jumps=yes it
is a guess who jumped to a function.")]
pub struct Args {
    /// The profile: callgrind.out.PID, or - for standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Where to write the new one, - for standard output; the object file lies beside it as OUT.so
    /// [default: FILE.jitted; of standard input: standard output]
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
    if output.is_none() && args.json {
        return Err(Error::Refused("--json and -o - cannot share standard output".into()));
    }
    // Refused early, before work is spent on what may not be written.
    let mut target = output.as_ref().map(|path| Output::create(path, args.force)).transpose()?;

    let (mut input, size) = open(&args.input)?;
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head).map_err(Error::file(&args.input))?;
    let pid = pid_of(&head);
    let image = image::path_for(&match &output {
        Some(output) => output.clone(),
        None if is_standard(&args.input) => {
            pid.map_or("callgrind.out".into(), |pid| format!("callgrind.out.{pid}").into())
        }
        None => args.input.clone(),
    })?;
    let mut warnings = Vec::new();
    let known = KnownCode::of(&args.sources, pid, &args.input, &mut warnings)?;
    if known.is_empty() {
        warnings.push(nothing_known(pid));
    }
    let sources = known.sources().to_vec();
    let mut map = Map::new(known, &image);

    let bar = note::progress("naming", size);
    let reader = bar.wrap_read(head.as_slice().chain(input));
    let done = match &mut target {
        Some(file) => callgrind::rewrite(reader, file.file(), &mut map),
        None => callgrind::rewrite(reader, std::io::stdout().lock(), &mut map),
    };
    let summary = done.map_err(|error| match (error, &output) {
        (callgrind::Error::Read(source), _) => Error::File { path: args.input.clone(), source },
        (callgrind::Error::Write(source), None) => Error::Stdout(source),
        (callgrind::Error::Write(source), Some(path)) => Error::File { path: path.clone(), source },
        (damaged, _) => Error::format(&args.input)(damaged),
    })?;
    bar.finish_and_clear();
    let (mut known, doubtful, has_bytes) = map.finish()?;
    if has_bytes {
        image::write(&mut known, &image, args.force)?;
    }
    if let Some(file) = target {
        file.finish()?;
    }
    let has_named = summary.events.first().is_some_and(|event| event.named > 0);
    let is_done = known.is_empty() || args.sources.named_at_once && !has_named;
    warn(&summary, doubtful, has_bytes, is_done, &mut warnings);
    Ok(Report {
        input: args.input.clone(),
        output,
        image: has_bytes.then_some(image),
        pid,
        summary,
        sources,
        warnings,
    })
}

/// Where it is written; none for standard output.
fn output_path(args: &Args) -> Option<PathBuf> {
    let path = match &args.output {
        Some(path) => path.clone(),
        None if is_standard(&args.input) => return None,
        None => {
            let mut name = OsString::from(&args.input);
            name.push(".jitted");
            name.into()
        }
    };
    (!is_standard(&path)).then_some(path)
}

/// Whether a path means standard input or output.
fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens the input, and says how much there is of it; of standard input nobody knows.
fn open(path: &Path) -> Result<(Box<dyn Read>, u64)> {
    if is_standard(path) {
        let input = std::io::stdin();
        return match input.is_terminal() {
            true => Err(Error::Usage("nothing is piped into standard input".into())),
            false => Ok((Box::new(input), 0)),
        };
    }
    let input = open_regular(path).map_err(Error::file(path))?;
    let size = input.metadata().map_or(0, |file| file.len());
    Ok((Box::new(input), size))
}

/// Says what could not be done, and what would have made it possible.
fn warn(
    summary: &Summary,
    doubtful: usize,
    has_bytes: bool,
    nothing_to_do: bool,
    warnings: &mut Vec<String>,
) {
    let (unknown, named) =
        summary.events.first().map_or((0, 0), |event| (event.unknown, event.named));
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

/// The process that a profile is of, as its header says. Whether that is damaged comes out when all is read.
fn pid_of(head: &[u8]) -> Option<u32> {
    let mut lines = Lines::new(head);
    while let Ok(Some(raw)) = lines.next_line() {
        match callgrind::parse(raw.bytes).ok()? {
            Line::Header { key: b"pid", value } => {
                return std::str::from_utf8(value).ok()?.parse().ok();
            }
            Line::Blank | Line::Header { .. } => {}
            _ => break,
        }
    }
    None
}
