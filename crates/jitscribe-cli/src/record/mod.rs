//! `jitscribe record`: from a command, or a running process, to a recording that names jitted code.
//!
//! [`mod@arguments`] tells our options from perf's, [`crate::runtimes`] knows what the command's runtimes
//! must be told, [`whose`] which running processes are recorded, whose [`logs`] are read and whose JVMs ([`java`]) are asked for
//! what they would not tell by themselves, [`perf`] records into the [`workspace`], [`crate::inject`] applies it all, and
//! [`summary`] says what came of it. [`mod@valgrind`] does the same with a tool of valgrind's instead of perf.

mod arguments;
mod java;
mod logs;
mod objects;
mod perf;
pub mod summary;
mod target;
mod valgrind;
mod whose;
mod workspace;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::inject::{self, Report, shell_word};
use crate::line_table::LineTable;
use crate::runtimes::{self, Preparation};
use crate::{Error, Result, bridge, note};

use java::Jvms;
use logs::Logs;
use whose::Whose;
use workspace::Workspace;

pub use arguments::{arguments, pass_on};
pub use target::check_program;

/// Record a command or a process, jitted code included
///
/// Runs perf record with the clock and call chains that jitted code needs, tells the runtimes that it
/// knows to announce their code, and brings what they wrote into the recording. Options that are
/// not listed here are perf record's own and are passed on: -F 999, -e cycles, -a, -C 0.
///
/// The exit code is the command's own; 128 + N if signal N ended it. Ctrl-C ends the recording, not
/// the work on it.
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

  # all that runs while a script does
  jitscribe record -a -- ./load-test.sh

  # under valgrind
  jitscribe record --tool=memcheck --leak-check=full -- node app.js",
    after_long_help = after_long_help()
)]
pub struct Args {
    /// Run the command under this tool of valgrind's instead of perf; options that are not listed here
    /// are valgrind's then. Each process makes a file FILE.PID [default: TOOL.out.PID]
    #[arg(long, value_name = "TOOL", value_enum)]
    pub tool: Option<valgrind::Tool>,
    /// Where to write the recording; the code goes into the folder FILE.jit beside it
    #[arg(short, long, value_name = "FILE", default_value = OUTPUT)]
    pub output: PathBuf,
    /// Record these running processes until Ctrl-C, until they end, or while COMMAND runs
    #[arg(short, long, value_name = "PID[,PID...]")]
    pub pid: Option<String>,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "command")]
    pub duration: Option<String>,
    /// How to take call chains: fp, dwarf or dwarf,BYTES, lbr, none
    #[arg(long, value_name = "HOW", default_value = "fp", value_parser = call_graph)]
    pub call_graph: String,
    /// Leave the command and its environment as they are: what its runtimes announce by themselves
    /// is all there is
    #[arg(long)]
    pub no_env: bool,
    /// Load a library into the command that announces what its runtimes write down as they do: under valgrind, jitted
    /// code has names at once; for perf, code of perf maps has bytes
    #[arg(long)]
    pub bridge: bool,
    /// Keep the recording as perf made it, and the dumps, in the folder FILE.raw
    #[arg(long)]
    pub keep_raw: bool,
    /// Where to write the object files; perf will look for them there [default: FILE.jit]
    #[arg(long, value_name = "DIR")]
    pub image_dir: Option<PathBuf>,
    /// Replace the recording and the object files if they exist
    #[arg(short, long)]
    pub force: bool,
    /// Add the object files, and what else was sampled, to perf's build-id cache (~/.debug) as well
    #[arg(long)]
    pub buildid_cache: bool,
    /// Print what was done as JSON (sizes in bytes, times in nanoseconds) on standard output
    #[arg(long)]
    pub json: bool,
    /// Pass one word on to perf record, as is done with all options that are not listed here
    #[arg(long, value_name = "WORD", require_equals = true, allow_hyphen_values = true)]
    pub perf_option: Vec<OsString>,
    /// What to run
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

  # all that runs while a script does
  jitscribe record -a -- ./load-test.sh

  # under valgrind
  jitscribe record --tool=memcheck --leak-check=full -- node app.js

{}
FILES:
  FILE is the recording and FILE.jit/ holds the code in it: the two belong together, and nothing else
  is needed. While it records, a folder .jitscribe-XXXXXX beside FILE holds what is not done yet; it
  stays if the work on it fails. Dumps are put there where the runtime lets us choose; the others are
  named at the end, with the command that removes them.",
        runtimes::help()
    )
}

fn seconds(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(text.to_owned()),
        _ => Err("a number of seconds above 0 is wanted".into()),
    }
}

fn call_graph(text: &str) -> Result<String, String> {
    let how = text.split(',').next().unwrap_or_default();
    if ["fp", "dwarf", "lbr", "none"].contains(&how) {
        Ok(text.to_owned())
    } else {
        Err("fp, dwarf, dwarf,BYTES, lbr or none is wanted".into())
    }
}

/// Where a recording goes unless said otherwise.
const OUTPUT: &str = "perf.data";

/// A recording that was made.
#[derive(Debug)]
pub struct Recorded {
    /// What was brought into it.
    pub report: Report,
    /// How the command ended.
    pub ended: Ended,
    /// Where everything was put while it came to be.
    workspace: Workspace,
}

pub use perf::Ended;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if let Some(tool) = args.tool {
        return valgrind::run(args, tool);
    }
    let recorded = record(args)?;
    summary::say(&recorded.report, &args.output);
    if args.keep_raw {
        let raw = recorded.workspace.recording();
        note::say(format_args!("as perf made it: {}", raw.display()));
    }
    summary::say_left(&recorded.report, recorded.workspace.folder());
    if args.json {
        recorded.report.print_json()?;
    }
    match recorded.ended.code() {
        0 => Ok(()),
        // An interrupt is how such a recording is meant to end.
        _ if recorded.ended.interrupted() && args.command.is_empty() => Ok(()),
        code => Err(Error::Child(code)),
    }
}

/// Records and injects.
pub fn record(args: &Args) -> Result<Recorded> {
    check(args)?;
    let whose = Whose::of(args.pid.as_deref(), &args.perf_option)?;
    if let Some(program) = args.command.first() {
        target::check_program(program)?;
    }
    let raw = with_suffix(&args.output, ".raw");
    let mut workspace = Workspace::new(&args.output, args.keep_raw.then_some(raw.as_path()))?;

    let dwarf = args.call_graph.starts_with("dwarf");
    // A command beside what runs only says how long.
    let mut prepared = if args.no_env || args.command.is_empty() || whose.is_named() {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else {
        Preparation::of(&args.command, workspace.folder(), dwarf)?
    };
    say_flags(&prepared);
    if args.bridge {
        add_bridge(&mut prepared)?;
        // perf sees by itself where dumps lie: their code would be told of twice.
        prepared.variables.insert(bridge::WHAT.into(), "maps".into());
    }

    let mut perf = perf_record(args, &workspace.recording(), &prepared);
    let ask = !args.no_env;
    let jvms = match &whose {
        Whose::Processes(pids) => Jvms::named(pids, ask),
        _ if ask => Jvms::among(&whose.pids()),
        _ => Jvms::default(),
    };
    let logs = Logs::open(&whose, ask);
    let ended = perf::run(&mut perf, perf::MISSING)?;
    // With those that came to be meanwhile, and still run.
    let pids = whose.with_children();
    let dumps = logs.collect(&pids, workspace.folder());
    let recording = workspace.recording();
    // perf makes the file before it knows whether it may record.
    if fs::metadata(&recording).is_ok_and(|file| file.is_file() && file.len() == 0)
        || fs::metadata(&recording).is_err()
    {
        if ended.interrupted() {
            return Err(Error::Child(ended.code()));
        }
        return Err(perf::refused(&perf, ended));
    }
    // JVMs that still run tell of what they compiled meanwhile.
    jvms.finish(if ask || whose.is_named() { &pids } else { &[] });

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
    });
    match injected {
        Ok(report) => Ok(Recorded { report, ended, workspace }),
        Err(error) => {
            workspace.keep();
            note::warning(format_args!(
                "what perf recorded is kept; to try again: jitscribe inject -i {} -o {}",
                shell_word(&recording),
                shell_word(&args.output)
            ));
            Err(error)
        }
    }
}

/// Has the library for `LD_PRELOAD` loaded into the command.
fn add_bridge(prepared: &mut Preparation) -> Result<()> {
    let library = bridge::library()?;
    if prepared.command.first().is_none_or(|program| bridge::may_load_into(program)) {
        prepared.variables.insert(bridge::VARIABLE.into(), bridge::value(&library));
    }
    Ok(())
}

/// Says what was put into the command.
pub fn say_flags(prepared: &Preparation) {
    if prepared.flags.is_empty() {
        return;
    }
    let flags: Vec<String> =
        prepared.flags.iter().map(|flag| shell_word(Path::new(flag))).collect();
    let name = prepared.runtime.map_or("the runtime", |runtime| runtime.name);
    note::say(format_args!("{name} is given {} (--no-env leaves it)", flags.join(" ")));
}

/// Refuses before anything runs what could not be done afterwards.
fn check(args: &Args) -> Result<()> {
    if args.output.as_os_str() == "-" {
        return Err(Error::Usage(
            "record writes a file; for a stream: perf record -k mono -o - -- CMD | jitscribe inject \
             -i - -o - --image-dir DIR"
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
            "what is to be recorded? A command (jitscribe record -- COMMAND...; mind the two \
             dashes), a process (-p PID) or all that runs (-a)"
                .into(),
        ));
    }
    if args.bridge && (args.command.is_empty() || args.pid.is_some()) {
        return Err(Error::Usage(
            "--bridge is for a command that is to be started; what runs already cannot be given a library"
                .into(),
        ));
    }
    if args.perf_option.iter().any(|option| option.as_bytes().starts_with(b"--switch-output")) {
        return Err(Error::Usage(
            "--switch-output makes several recordings; record them by perf record -k mono, then \
             jitscribe inject each"
                .into(),
        ));
    }
    let mut places = vec![args.output.clone()];
    places.extend(args.keep_raw.then(|| with_suffix(&args.output, ".raw")));
    let replaceable = &args.output;
    for place in &places {
        if place.symlink_metadata().is_ok() && !(args.force && place == replaceable) {
            let how =
                if place == replaceable { "--force replaces it, or " } else { "remove it, or " };
            return Err(Error::Refused(format!(
                "{}: exists already; {how}-o FILE writes elsewhere",
                place.display()
            )));
        }
    }
    let images = args.image_dir.clone().unwrap_or_else(|| with_suffix(&args.output, ".jit"));
    let filled = images.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if filled && !args.force && args.image_dir.is_none() {
        return Err(Error::Refused(format!(
            "{}: there is code of an earlier recording; --force replaces it, or -o FILE writes \
             elsewhere",
            images.display()
        )));
    }
    Ok(())
}

/// The command that records.
fn perf_record(args: &Args, recording: &Path, prepared: &Preparation) -> Command {
    let mut perf = Command::new("perf");
    // jitdumps are timed by this clock. What comes later wins, so that options passed on do.
    perf.args(["record", "-k", "mono", "-o"]).arg(recording);
    if !args.perf_option.iter().any(|option| option == "-v") {
        // perf would name a file that is not what the user gets.
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
