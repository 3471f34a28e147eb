//! `jitscribe callgrind`: names, lines and calls for the jitted code in a profile.
//!
//! The crate `callgrind` copies the profile and splits unknown code into functions. [`map`] provides the known code, [`names`]
//! how it is called, [`image`] writes the object file that KCachegrind disassembles, and [`report`] reports the result.

mod image;
mod map;
mod names;
mod report;

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use callgrind::{Line, Lines, Summary};

use crate::files::open_regular;
use crate::symbols::{SourceArgs, SymbolIndex, no_code_found};
use crate::text::Out;
use crate::{Error, Result, note};
use jitscribe_inject::output::Output;

use map::{Found, Map};
pub use report::Report;

/// The header gives the process id within this many bytes.
const HEAD: u64 = 1 << 18;

/// Name jitted code in a callgrind profile
///
/// callgrind does not know jitted code: it shows addresses, splits a function into one piece per entry point,
/// and merges functions that jump to one another. This command copies the profile with the functions, calls and
/// costs that callgrind would have counted if it had known the code. It adds source lines for every instruction,
/// and writes an object file with the code at its addresses, which KCachegrind disassembles. Total costs are
/// preserved to the last instruction.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  MVM_JIT_PERF_MAP=1 valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes rakudo-m app.raku
  jitscribe callgrind callgrind.out.4711
  kcachegrind callgrind.out.4711.jitted

  # the same through a pipe; the object file is callgrind.out.4711.so
  zstdcat callgrind.out.4711.zst | jitscribe callgrind - > named.out

  # show callers and callees as well
  callgrind_annotate --tree=both callgrind.out.4711.jitted

Without --dump-instr=yes, pieces are named as a whole and not split into functions. Without
--collect-jumps=yes, the origin of a jump to a function is a guess.")]
pub struct Args {
    /// The profile: callgrind.out.PID, or - for standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Where to write the new profile, - for standard output; the object file is written beside it as OUT.so
    /// [default: FILE.jitted; for standard input: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Replace the output and the object file if they exist
    #[arg(short, long)]
    pub force: bool,
    /// Print a report as JSON on standard output
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

/// Rewrites the profile and returns a report.
pub fn rewrite(args: &Args) -> Result<Report> {
    let output = output_path(args);
    if output.is_none() && args.json {
        return Err(Error::Refused("--json and -o - cannot share standard output".into()));
    }
    // Created early, so that an existing file is rejected before any work is done.
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
    let known = SymbolIndex::of(&args.sources, pid, &args.input, &mut warnings)?;
    if known.is_empty() {
        warnings.push(no_code_found(pid));
    }
    let sources = known.sources().to_vec();
    // The folders of the profile: the process's working folder is one of them, unless the user chose another.
    let beside = [output.as_deref().unwrap_or(Path::new("-")), &args.input];
    let folder = |path: &&Path| std::path::absolute(Path::new(".").join(path.parent()?)).ok();
    let folders = beside.iter().filter_map(folder);
    let mut map = Map::new(known, &image, folders.collect());

    let bar = note::progress("naming", size);
    let reader = bar.wrap_read(head.as_slice().chain(input));
    let done = match &mut target {
        Some(file) => callgrind::rewrite(reader, file.file(), &mut map),
        None => callgrind::rewrite(reader, Out::new(), &mut map),
    };
    let summary = done.map_err(|error| match (error, &output) {
        (callgrind::Error::Read(source), _) => Error::File { path: args.input.clone(), source },
        (callgrind::Error::Write(source), None) => Error::Stdout(source),
        (callgrind::Error::Write(source), Some(path)) => Error::File { path: path.clone(), source },
        (damaged, _) => Error::format(&args.input)(damaged),
    })?;
    bar.finish_and_clear();
    let found = map.finish()?;
    warn_about_lines(&summary, &found, &mut warnings);
    let Found { mut known, doubtful, has_bytes, .. } = found;
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

/// The path of the output; `None` for standard output.
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

/// Opens the input and returns its size, which is 0 for standard input.
fn open(path: &Path) -> Result<(Box<dyn Read>, u64)> {
    if is_standard(path) {
        let input = std::io::stdin();
        return match input.is_terminal() {
            true => Err(Error::Usage("standard input is a terminal; pipe a file into it".into())),
            false => Ok((Box::new(input), 0)),
        };
    }
    let input = open_regular(path).map_err(Error::file(path))?;
    let size = input.metadata().map_or(0, |file| file.len());
    Ok((Box::new(input), size))
}

/// Adds warnings about what could not be done, and what would have made it possible.
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
        warnings.push("the profile ends in the middle of a line: it is incomplete".into());
    }
    if nothing_to_do {
        return;
    }
    if unknown == 0 {
        warnings.push(
            "callgrind knew all code in the profile, so there is nothing to name. Did the JIT run? Was its \
             code announced while it ran under valgrind?"
                .into(),
        );
        return;
    }
    if named == 0 {
        warnings.push(
            "none of the unknown code in the profile is at an address that the files describe: are they \
             from the same run?"
                .into(),
        );
        return;
    }
    if !summary.has_instructions {
        warnings.push(
            "the profile has no costs per instruction: code is named by its entry point, has no lines, and \
             includes the costs of what it jumps to. To avoid this: valgrind --tool=callgrind \
             --dump-instr=yes --collect-jumps=yes"
                .into(),
        );
    } else if !summary.has_jumps {
        warnings.push(
            "the profile has no jumps: costs belong to the right functions, but the origin of a jump to a \
             function is a guess. To avoid this: valgrind --tool=callgrind --collect-jumps=yes"
                .into(),
        );
    }
    if doubtful > 0 {
        warnings.push(format!(
            "{doubtful} of the functions are at addresses that held other code at other times; the last \
             code there is named"
        ));
    }
    if !has_bytes && summary.has_instructions {
        warnings.push(
            "no code bytes available, so KCachegrind can show no assembly (jitdumps have the bytes, perf \
             maps carry none)"
                .into(),
        );
    }
}

/// Adds warnings about lines that are missing in announced code.
fn warn_about_lines(summary: &Summary, found: &Found, warnings: &mut Vec<String>) {
    let Some(event) = summary.events.first() else { return };
    let left = event.without_line.saturating_sub(event.restored);
    if !summary.has_instructions {
        if left > 0 {
            warnings.push(
                "announced code has no lines, because it was freed before the profile was written; with \
                 --dump-instr=yes they are restored from the code log"
                    .into(),
            );
        }
        return;
    }
    if left > 0 && found.known.is_empty() {
        warnings.push(
            "announced code has no lines, because it was freed before the profile was written, and there is no \
             code log to restore them from. To write one: JITSCRIBE=jitdump"
                .into(),
        );
    }
    if found.undecided > 0 {
        warnings.push(format!(
            "{} announced functions are at addresses of several codes, none of which has the function's name: \
             their lines may be missing or wrong",
            found.undecided
        ));
    }
}

/// The process id in the header of a profile. Damage in the header is reported later, when the whole profile is read.
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
