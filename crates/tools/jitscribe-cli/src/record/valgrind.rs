//! `jitscribe record --tool`: runs a command under a tool of valgrind and adds names to the tool's output.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime};

use serde::Serialize;

use super::args::{Args, OUTPUT, with_suffix};
use super::objects::Objects;
use super::prepared::{add_bridge, print_preparation};
use super::tool::Tool;
use super::workspace::{self, Workspace};
use super::{perf, summary, target};
use crate::callgrind;
use crate::runtimes::{Maps, Preparation, Stacks};
use crate::symbols::SourceArgs;
use crate::text::shell_word;
use crate::valgrind::{self, FileArgs, cachegrind, dhat, massif, memcheck};
use crate::{Error, Result, console, note, text};
use jitscribe_inject::RecordingBegin;
use jitscribe_inject::output::Output;

/// The report on one file. With `--json`, a list of these is printed.
#[derive(Debug, Serialize)]
struct Item {
    #[serde(flatten)]
    done: Outcome,
    /// Whether the process itself announced its code to valgrind while it ran.
    named_at_once: bool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Outcome {
    Profiled(callgrind::Report),
    Named(valgrind::Report),
    Counted(cachegrind::Report),
}

/// The path of valgrind's output files, without the process id at the end.
fn base(args: &Args, tool: Tool) -> PathBuf {
    // The default is a name for perf's recordings.
    if args.output == Path::new(OUTPUT) {
        PathBuf::from(format!("{}.out", tool.name()))
    } else {
        args.output.clone()
    }
}

/// Runs the command.
pub fn run(args: &Args, tool: Tool) -> Result<()> {
    check(args)?;
    let base = base(args, tool);
    if let Some(program) = args.command.first() {
        target::check_program(program)?;
    }
    let raw = with_suffix(&base, ".raw");
    if args.force && args.keep_raw {
        workspace::remove(&raw)?;
    }
    let mut workspace = Workspace::new(&base, args.keep_raw.then_some(raw.as_path()))?;
    let mut prepared = if args.no_env {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else {
        Preparation::of(
            &args.command,
            workspace.folder(),
            Stacks::FramePointers,
            Maps::InsteadOfDumps,
        )?
    };
    print_preparation(&prepared);
    if args.bridge {
        add_bridge(&mut prepared)?;
    }
    let mut objects = Objects::new(args, &base, workspace.folder(), &mut prepared)?;
    let name = base.file_name().unwrap_or(OsStr::new(tool.name()));
    let mut command = command(args, tool, &prepared, &workspace.folder().join(name));
    let (wall, clock) = (SystemTime::now(), Instant::now());
    let ended = perf::run(&mut command, MISSING)?;
    let begin = RecordingBegin::of_ended(wall, clock.elapsed());
    perf::end_by_signals(&command)?;

    let files = made(workspace.folder(), name)?;
    if files.is_empty() {
        if !ended.interrupted() {
            note::error(&format_args!(
                "valgrind wrote nothing (exit code {}); to see why, run it without jitscribe record",
                ended.code()
            ));
        }
        return Err(Error::Child(ended.code().max(1)));
    }
    let pid_of = |file: &PathBuf| file.extension()?.to_str()?.parse().ok();
    let pids: Vec<u32> = files.iter().filter_map(pid_of).collect();
    let (mut all, mut failed) = (Vec::new(), false);
    for file in files {
        let output = base.with_file_name(file.file_name().unwrap_or(name));
        let named_at_once = objects.are_of(&file);
        let leaving = if args.keep_raw { Vec::new() } else { objects.folders(workspace.folder()) };
        let sources = SourceArgs {
            aux_dir: objects.folders(workspace.folder()),
            leaving,
            named_at_once,
            begin,
            ..SourceArgs::default()
        };
        match done(args, tool, &file, &output, sources) {
            Ok(done) => {
                if named_at_once {
                    note::say(objects.line());
                }
                all.push(Item { done, named_at_once });
            }
            Err(error) => {
                note::error(&error);
                failed = true;
            }
        }
    }
    if failed {
        objects.keep();
        workspace.keep();
        note::warning(format_args!(
            "the output of valgrind is kept in {}",
            text::path(workspace.folder())
        ));
    }
    if !failed {
        summary::list_leftovers_of(pids.into_iter());
    }
    if args.json {
        print_json(&all)?;
    }
    match ended.code() {
        0 if failed => Err(Error::Reported),
        0 => Ok(()),
        code => Err(Error::Child(code)),
    }
}

const MISSING: &str = "valgrind is not installed; on Debian: apt-get install valgrind";

/// Rejects options that only work with perf, and options that would put the output where we do not look for it.
fn check(args: &Args) -> Result<()> {
    let perfs = [
        (args.pid.is_some(), "-p"),
        (args.duration.is_some(), "--duration"),
        (!args.jitdump.is_empty(), "--jitdump"),
        (!args.perf_map.is_empty(), "--perf-map"),
        (args.image_dir.is_some(), "--image-dir"),
        (args.buildid_cache, "--buildid-cache"),
    ];
    if let Some((_, option)) = perfs.iter().find(|(given, _)| *given) {
        return Err(Error::Usage(format!("{option} works only with perf, not with --tool")));
    }
    if args.command.is_empty() {
        return Err(Error::Usage(
            "nothing to run. Pass a command after `--`: jitscribe record --tool=TOOL -- COMMAND..."
                .into(),
        ));
    }
    let is_place = |option: &&OsString| {
        let option = option.as_bytes();
        let name = option.split(|&byte| byte == b'=').next().unwrap_or_default();
        name.ends_with(b"-out-file") || name.ends_with(b"ml-file") || name.starts_with(b"--log-")
    };
    if let Some(option) = args.perf_option.iter().find(is_place) {
        return Err(Error::Usage(format!(
            "{}: use -o FILE to set where valgrind's output goes (FILE.PID)",
            text::path(option)
        )));
    }
    Ok(())
}

/// The valgrind command line. Later options win, so the user's options override ours.
fn command(args: &Args, tool: Tool, prepared: &Preparation, file: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg(format!("--tool={}", tool.name()));
    // JITs overwrite code all the time, and most are started by a script.
    valgrind.args(["--smc-check=all-non-file", "--trace-children=yes"]);
    // A compiler thread competes with hot threads. Without fair scheduling, each file that it opens can cost it half a second in
    // which valgrind lets the others run, even on a machine with idle processors.
    valgrind.arg("--fair-sched=try");
    let xml = args.perf_option.iter().any(|option| option == "--xml=yes");
    let out = match tool {
        Tool::Memcheck if xml => "--xml-file".to_owned(),
        Tool::Memcheck => "--log-file".to_owned(),
        _ => format!("--{}-out-file", tool.name()),
    };
    let mut place = OsString::from(out);
    place.push("=");
    // valgrind expands `%` sequences in paths.
    place.push(OsStr::from_bytes(&escaped(file.as_os_str().as_bytes())));
    place.push(".%p");
    valgrind.arg(place);
    match tool {
        // Stacks may contain libraries that have been unloaded since.
        Tool::Memcheck => drop(valgrind.arg("--keep-debuginfo=yes")),
        Tool::Massif | Tool::Dhat => drop(valgrind.args(["-q", "--keep-debuginfo=yes"])),
        Tool::Cachegrind => drop(valgrind.arg("-q")),
        // Instructions and jumps are needed to split jitted code into functions.
        Tool::Callgrind => {
            valgrind.args(["-q", "--dump-instr=yes", "--collect-jumps=yes"]);
        }
    }
    valgrind.args((0..console::verbosity()).map(|_| "-v"));
    valgrind.args((console::is_quiet() && tool == Tool::Memcheck).then_some("-q"));
    valgrind.args(&args.perf_option).arg("--").args(&prepared.command);
    valgrind.envs(&prepared.variables);
    if tool == Tool::Memcheck && !args.no_env && std::env::var_os("JITSCRIBE_LIMIT").is_none() {
        // A leak check reads all mapped memory, and our dumps are mapped at their maximum size.
        valgrind.env("JITSCRIBE_LIMIT", "64M");
    }
    valgrind
}

fn escaped(path: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'%').collect();
    parts.join(&b"%%"[..])
}

/// The files that valgrind wrote: one per process, or more if options ask for more.
fn made(folder: &Path, name: &OsStr) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| {
            let rest = entry.file_name();
            let rest = rest.as_bytes().strip_prefix(name.as_bytes());
            let rest = rest.and_then(|rest| rest.strip_prefix(b"."));
            rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
        })
        // With --separate-threads, callgrind also creates a file without a thread number and leaves it empty.
        .filter(|entry| entry.metadata().is_ok_and(|file| file.len() > 0))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    Ok(files)
}

/// Adds names to one file and reports the result.
fn done(
    args: &Args,
    tool: Tool,
    file: &Path,
    output: &Path,
    sources: SourceArgs,
) -> Result<Outcome> {
    let shown = shell_word(output);
    let (name, next): (fn(&FileArgs) -> Result<valgrind::Report>, _) = match tool {
        Tool::Callgrind => return profiled(args, file, output, sources),
        Tool::Cachegrind => return counted(args, file, output),
        Tool::Memcheck => (memcheck::name, format!("less {shown}")),
        Tool::Massif => (massif::name, format!("ms_print {shown}")),
        Tool::Dhat => {
            (dhat::name, format!("load {shown} into dh_view.html, which comes with valgrind"))
        }
    };
    let mut report = name(&FileArgs {
        input: file.to_owned(),
        output: Some(output.to_owned()),
        sources,
        full_path: args.perf_option.iter().any(|it| it.as_bytes().starts_with(b"--fullpath-after")),
        force: args.force,
        json: args.json,
    })?;
    // The input file disappears with the workspace.
    output.clone_into(&mut report.input);
    report.say_what();
    note::say(format_args!("written: {shown}; next: {next}"));
    Ok(Outcome::Named(report))
}

fn profiled(args: &Args, file: &Path, output: &Path, sources: SourceArgs) -> Result<Outcome> {
    let mut report = callgrind::rewrite(&callgrind::Args {
        input: file.to_owned(),
        output: Some(output.to_owned()),
        sources,
        force: args.force,
        json: args.json,
    })?;
    output.clone_into(&mut report.input);
    report.say();
    Ok(Outcome::Profiled(report))
}

fn counted(args: &Args, file: &Path, output: &Path) -> Result<Outcome> {
    let mut target = Output::create(output, args.force)?;
    let mut input = fs::File::open(file).map_err(Error::file(file))?;
    std::io::copy(&mut input, target.file()).map_err(Error::file(output))?;
    target.finish()?;
    let report = cachegrind::read(output)?;
    report.say();
    Ok(Outcome::Counted(report))
}

fn print_json(all: &[Item]) -> Result<()> {
    let mut out = text::Out::new();
    out.json_pretty(&all)?;
    out.finish()
}
