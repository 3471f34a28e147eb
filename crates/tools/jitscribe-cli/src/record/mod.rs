//! `jitscribe record`: records a command or a running process, with names for jitted code.
//!
//! - [`mod@arguments`] separates our options from those of perf.
//! - [`crate::runtimes`] knows the settings that make the command's runtimes announce their code.
//! - [`scope`] determines which running processes are recorded. Their code [`logs`] are read, and their JVMs ([`java`]) are asked
//!   for code that they do not announce by themselves.
//! - [`perf`] records into the [`workspace`], and [`crate::inject`] adds the code to the recording.
//! - [`summary`] reports the result.
//! - [`mod@valgrind`] does the same with a tool of valgrind instead of perf.

mod arguments;
mod java;
mod logs;
mod objects;
mod perf;
mod scope;
pub mod summary;
mod target;
mod valgrind;
mod workspace;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use crate::inject::{self, Report};
use crate::line_table::LineTable;
use crate::runtimes::{self, Preparation};
use crate::text::shell_word;
use crate::{Error, Result, bridge, child, note, text};

use java::Jvms;
use logs::Logs;
use scope::Scope;
use workspace::Workspace;

pub use arguments::{arguments, pass_on};
pub use java::JvmTask;
pub use target::check_program;

/// Record a command or a process, including its jitted code
///
/// Runs perf record with the clock and call chains that jitted code needs, configures known runtimes
/// to announce their code, and adds that code to the recording. Options that are not listed here are
/// passed on to perf record: -F 999, -e cycles, -a, -C 0.
///
/// The exit code is the command's own; 128 + N if signal N ended it. Ctrl-C ends the recording, and
/// the recording is then processed as usual.
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "jitscribe record [OPTIONS] [PERF OPTIONS] -- COMMAND...\n       \
                      jitscribe record [OPTIONS] [PERF OPTIONS] -p PID [-- COMMAND...]\n       \
                      jitscribe record --tool=TOOL [OPTIONS] [VALGRIND OPTIONS] -- COMMAND...",
    after_help = "EXAMPLES:
  jitscribe record -- node app.js
  perf report

  jitscribe record -o out.data -F 999 --call-graph dwarf -- java -jar app.jar

  # a running process, for ten seconds
  jitscribe record -p 4711 --duration 10

  # the whole system while a script runs
  jitscribe record -a -- ./load-test.sh

  # under valgrind
  jitscribe record --tool=memcheck --leak-check=full -- node app.js",
    after_long_help = after_long_help()
)]
pub struct Args {
    /// Run the command under this tool of valgrind instead of perf; options that are not listed here are
    /// then passed on to valgrind. Each process writes a file FILE.PID [default: TOOL.out.PID]
    #[arg(long, value_name = "TOOL", value_enum)]
    pub tool: Option<valgrind::Tool>,
    /// Where to write the recording; object files with the code go into the folder FILE.jit beside it
    #[arg(short, long, value_name = "FILE", default_value = OUTPUT)]
    pub output: PathBuf,
    /// Record these running processes until Ctrl-C, until they end, or while COMMAND runs
    #[arg(short, long, value_name = "PID[,PID...]")]
    pub pid: Option<String>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "command")]
    pub duration: Option<String>,
    /// How to record call chains: fp, dwarf or dwarf,BYTES, lbr, none
    #[arg(long, value_name = "HOW", default_value = "fp", value_parser = call_graph)]
    pub call_graph: String,
    /// Leave the command and its environment unchanged: only code that its runtimes announce by themselves
    /// has names
    #[arg(long)]
    pub no_env: bool,
    /// Load a library into the command that announces the code as its runtimes write it down: under valgrind, jitted
    /// code has names while it runs; for perf, code from perf maps has bytes
    #[arg(long)]
    pub bridge: bool,
    /// Keep the recording as perf wrote it, and the dumps, in the folder FILE.raw
    #[arg(long)]
    pub keep_raw: bool,
    /// Where to write the object files; perf looks for them there [default: FILE.jit]
    #[arg(long, value_name = "DIR")]
    pub image_dir: Option<PathBuf>,
    /// Replace the recording and the object files if they exist
    #[arg(short, long)]
    pub force: bool,
    /// Also add the object files, and all other sampled files, to perf's build-id cache (~/.debug)
    #[arg(long)]
    pub buildid_cache: bool,
    /// Print a report as JSON (sizes in bytes, times in nanoseconds) on standard output
    #[arg(long)]
    pub json: bool,
    /// Pass one word on to perf record; options that are not listed here are passed on automatically
    #[arg(long, value_name = "WORD", require_equals = true, allow_hyphen_values = true)]
    pub perf_option: Vec<OsString>,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn after_long_help() -> String {
    format!(
        "EXAMPLES:
  jitscribe record -- node app.js
  perf report

  jitscribe record -o out.data -F 999 --call-graph dwarf -- java -jar app.jar

  # a running process, for ten seconds
  jitscribe record -p 4711 --duration 10

  # the whole system while a script runs
  jitscribe record -a -- ./load-test.sh

  # under valgrind
  jitscribe record --tool=memcheck --leak-check=full -- node app.js

{}
FILES:
  FILE is the recording, and FILE.jit/ holds the code in it. Keep the two together; nothing else is
  needed. While recording, a folder .jitscribe-XXXXXX beside FILE holds intermediate files; it is kept
  if processing fails. Runtimes that let us choose the place write their dumps there; all other dumps
  are listed at the end, with the command that removes them.",
        runtimes::help()
    )
}

fn seconds(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(text.to_owned()),
        _ => Err("expected a number of seconds greater than 0".into()),
    }
}

fn call_graph(text: &str) -> Result<String, String> {
    let how = text.split(',').next().unwrap_or_default();
    if ["fp", "dwarf", "lbr", "none"].contains(&how) {
        Ok(text.to_owned())
    } else {
        Err("expected fp, dwarf, dwarf,BYTES, lbr or none".into())
    }
}

/// The default output file.
const OUTPUT: &str = "perf.data";

/// A finished recording.
#[derive(Debug)]
pub struct RecordingResult {
    /// What was added to it.
    pub report: Report,
    /// How the command ended.
    pub ended: RecordingEnd,
    /// The folder with the intermediate files.
    workspace: Workspace,
}

pub use perf::RecordingEnd;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if let Some(tool) = args.tool {
        return valgrind::run(args, tool);
    }
    let recorded = record(args)?;
    summary::print(&recorded.report, &args.output);
    if args.keep_raw {
        let raw = recorded.workspace.recording();
        note::say(format_args!("the recording as perf wrote it: {}", text::path(&raw)));
    }
    summary::list_leftovers(&recorded.report, recorded.workspace.folder());
    if args.json {
        inject::print_json(&recorded.report)?;
    }
    match recorded.ended.code() {
        0 => Ok(()),
        // A recording without a command is meant to be ended by an interrupt.
        _ if recorded.ended.interrupted() && args.command.is_empty() => Ok(()),
        code => Err(Error::Child(code)),
    }
}

/// Records and injects.
pub fn record(args: &Args) -> Result<RecordingResult> {
    check(args)?;
    let scope = Scope::of(args.pid.as_deref(), &args.perf_option)?;
    if let Some(program) = args.command.first() {
        target::check_program(program)?;
    }
    let raw = with_suffix(&args.output, ".raw");
    let mut workspace = Workspace::new(&args.output, args.keep_raw.then_some(raw.as_path()))?;

    let dwarf = args.call_graph.starts_with("dwarf");
    // With running processes, the command only determines how long to record.
    let mut prepared = if args.no_env || args.command.is_empty() || scope.is_named() {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else {
        Preparation::of(&args.command, workspace.folder(), dwarf)?
    };
    print_flags(&prepared);
    if args.bridge {
        add_bridge(&mut prepared)?;
        // perf records where dumps are: their code would be announced twice.
        prepared.variables.insert(bridge::WHAT.into(), "maps".into());
    }

    let mut perf = perf_record(args, &workspace.recording(), &prepared);
    let ask = !args.no_env;
    let jvms = match &scope {
        Scope::Processes(pids) => Jvms::named(pids, ask),
        _ if ask => Jvms::among(&scope.pids()),
        _ => Jvms::default(),
    };
    // The control words that `Logs::open` changes must be restored, however the recording ends.
    let caught = perf::catch_signals(&perf)?;
    let logs = Logs::open(&scope, ask);
    if let Ok(signal @ 1..) = i32::try_from(caught.load(Ordering::Relaxed)) {
        return Err(Error::Child(child::code_of_signal(signal)));
    }
    let mut users = scope::users(&scope.pids());
    let ended = perf::run(&mut perf, perf::MISSING)?;
    // Include children that were started during the recording and still run.
    let pids = scope.with_children();
    for (pid, user) in scope::users(&pids) {
        users.entry(pid).or_insert(user);
    }
    let dumps = logs.collect(&pids, workspace.folder());
    perf::end_by_signals(&perf)?;
    let recording = workspace.recording();
    // perf creates the file before it knows whether it may record.
    if fs::metadata(&recording).is_ok_and(|file| file.is_file() && file.len() == 0)
        || fs::metadata(&recording).is_err()
    {
        if ended.interrupted() {
            return Err(Error::Child(ended.code()));
        }
        return Err(perf::refused(&perf, ended));
    }
    // JVMs that still run write maps of the code that they compiled during the recording.
    jvms.finish(if ask || scope.is_named() { &pids } else { &[] });

    let injected = inject::inject(&inject::Args {
        input: recording.clone(),
        output: Some(args.output.clone()),
        jitdump: dumps,
        perf_map: Vec::new(),
        aux_dir: vec![workspace.folder().to_owned()],
        image_dir: args.image_dir.clone(),
        force: args.force,
        buildid_cache: args.buildid_cache,
        lines: LineTable::default(),
        json: false,
        users,
    });
    match injected {
        Ok(report) => Ok(RecordingResult { report, ended, workspace }),
        Err(error) => {
            workspace.keep();
            note::warning(format_args!(
                "the recording is kept; to try again: jitscribe inject -i {} -o {}",
                shell_word(&recording),
                shell_word(&args.output)
            ));
            Err(error)
        }
    }
}

/// Makes the command load the library for `LD_PRELOAD`.
fn add_bridge(prepared: &mut Preparation) -> Result<()> {
    let library = bridge::library()?;
    if prepared.command.first().is_none_or(|program| bridge::may_load_into(program)) {
        prepared.variables.insert(bridge::VARIABLE.into(), bridge::value(&library));
    }
    Ok(())
}

/// Reports the flags that were added to the command.
pub fn print_flags(prepared: &Preparation) {
    if prepared.flags.is_empty() {
        return;
    }
    let flags: Vec<String> = prepared.flags.iter().map(shell_word).collect();
    let name = prepared.runtime.map_or("the runtime", |runtime| runtime.name);
    note::say(format_args!("{name} is run with {} (--no-env prevents this)", flags.join(" ")));
}

/// Rejects, before anything runs, arguments that would fail after the recording.
fn check(args: &Args) -> Result<()> {
    if args.output.as_os_str() == "-" {
        return Err(Error::Usage(
            "record cannot write to standard output; for a stream: perf record -k mono -o - -- CMD | \
             jitscribe inject -i - -o - --image-dir DIR"
                .into(),
        ));
    }
    let says_whose = |option: &OsString| {
        let options = ["-a", "-C", "-t", "-u", "--all-cpus", "--cpu", "--tid", "--uid"];
        options.iter().any(|one| option.as_bytes().starts_with(one.as_bytes()))
    };
    let bounded = args.pid.is_some() || args.perf_option.iter().any(says_whose);
    if args.command.is_empty() && !bounded {
        return Err(Error::Usage(
            "nothing to record. Pass a command after `--` (jitscribe record -- COMMAND...), a process \
             with -p PID, or -a"
                .into(),
        ));
    }
    if args.bridge && (args.command.is_empty() || args.pid.is_some()) {
        return Err(Error::Usage(
            "--bridge needs a command to start; a library cannot be loaded into a running process"
                .into(),
        ));
    }
    if args.perf_option.iter().any(|option| option.as_bytes().starts_with(b"--switch-output")) {
        return Err(Error::Usage(
            "--switch-output makes several recordings; record them with perf record -k mono, then \
             run jitscribe inject on each"
                .into(),
        ));
    }
    let mut places = vec![args.output.clone()];
    places.extend(args.keep_raw.then(|| with_suffix(&args.output, ".raw")));
    let replaceable = &args.output;
    for place in &places {
        if place.symlink_metadata().is_ok() && !(args.force && place == replaceable) {
            let how = if place == replaceable { "use --force to replace it" } else { "remove it" };
            return Err(Error::Refused(format!(
                "{}: already exists; {how}, or write elsewhere with -o FILE",
                text::path(place)
            )));
        }
    }
    let images = args.image_dir.clone().unwrap_or_else(|| with_suffix(&args.output, ".jit"));
    let filled = images.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if filled && !args.force && args.image_dir.is_none() {
        return Err(Error::Refused(format!(
            "{}: contains code of an earlier recording; use --force to replace it, or write \
             elsewhere with -o FILE",
            text::path(&images)
        )));
    }
    Ok(())
}

/// The command that records.
fn perf_record(args: &Args, recording: &Path, prepared: &Preparation) -> Command {
    let mut perf = Command::new("perf");
    // This is the clock of jitdumps. Later options win, so the user's options override this one.
    perf.args(["record", "-k", "mono", "-o"]).arg(recording);
    if !args.perf_option.iter().any(|option| option == "-v") {
        // perf would name an intermediate file.
        perf.arg("-q");
    }
    if !args.buildid_cache {
        perf.arg("--no-buildid-cache");
    }
    if args.call_graph != "none" {
        perf.arg("--call-graph").arg(&args.call_graph);
    }
    if let Some(pid) = &args.pid {
        perf.arg("-p").arg(pid);
    }
    perf.args(&args.perf_option);
    if let Some(seconds) = &args.duration {
        perf.args(["--", "sleep", seconds]);
    } else if !prepared.command.is_empty() {
        perf.arg("--").args(&prepared.command);
    }
    perf.envs(&prepared.variables);
    perf
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
