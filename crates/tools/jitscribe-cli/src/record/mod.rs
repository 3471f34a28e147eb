//! `jitscribe record`: records a command or a running process, with names for jitted code.
//!
//! - [`mod@arguments`] separates our options from those of perf.
//! - [`crate::runtimes`] knows the settings that make the command's runtimes announce their code.
//! - [`scope`] determines which running processes are recorded. Their code [`logs`] are read, and their JVMs ([`java`]) are asked
//!   for code that they do not announce by themselves; [`mod@inspect`] only if the user says so.
//! - [`memory`] reads the executable memory of the recorded processes, [`registered`] the code that they register with debuggers, and [`gone`] holds their files
//!   that are gone, all by [`polling`].
//! - [`mod@follow`] keeps the files of processes that end before the recording does within reach.
//! - [`perf`] records into the [`workspace`], and [`crate::inject`] adds the code to the recording.
//! - [`summary`] reports the result, and [`leftovers`] removes what only we caused.
//! - [`mod@valgrind`] does the same with a tool of valgrind instead of perf.

mod abandoned;
mod agent;
mod args;
mod arguments;
mod breakpoints;
mod call_graph;
mod follow;
mod gone;
mod held;
mod inspect;
mod java;
mod json;
mod leftovers;
mod logs;
mod memory;
mod objects;
mod perf;
mod placement;
mod polling;
mod prepared;
mod recorded_processes;
mod registered;
mod scope;
pub mod summary;
mod target;
mod tool;
mod valgrind;
mod workspace;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::files::Named;
use crate::inject::{self, Report};
use crate::line_table::LineTable;
use crate::perf_access::{self, Recorded};
use crate::runtimes::{self, Maps, Preparation, Stacks};
use crate::sample_summary::SampleSummary;
use crate::text::shell_word;
use crate::unnamed::Started;
use crate::{Error, Result, bridge, child, console, note, process, text};

use call_graph::{Choice, DWARF};
use follow::{Added, Following};
use gone::GoneFilesReader;
use inspect::Inspected;
use java::Jvms;
use logs::Logs;
use memory::MemoryReader;
use placement::Placement;
use registered::RegisteredReader;
pub use registered::found_text;
use scope::Scope;
use workspace::Workspace;

use args::with_suffix;
pub use args::{Args, seconds};
pub use arguments::{arguments, pass_on, verb};
pub use follow::FollowTask;
pub use held::Held;
pub use inspect::InspectTask;
pub use java::JvmTask;
use prepared::add_bridge;
pub use prepared::print_preparation;
pub use target::check_program;

/// `dwarf` with the size of the copies, unless the user chooses it. The stack of a language runtime is often deeper than the 8 KiB that
/// perf copies: see docs/viewers.md.
const DWARF_SIZED: &str = "dwarf,32768";

/// A finished recording.
#[derive(Debug)]
pub struct RecordingResult {
    /// What was added to it.
    pub report: Report,
    /// Where its samples are.
    pub summary: SampleSummary,
    /// How the command ended.
    pub ended: RecordingEnd,
    /// Whether its command was prepared to announce its code.
    is_prepared: bool,
    /// The processes in which V8 wrote files only because we asked it to.
    asked: BTreeSet<u32>,
    /// When it began.
    begun: SystemTime,
    /// The folder with the intermediate files.
    workspace: Workspace,
}

pub use perf::RecordingEnd;

impl RecordingResult {
    /// How its processes were started.
    fn started<'a>(&self, args: &'a Args) -> Started<'a> {
        // With running processes, the command is another one.
        let command = if args.pid.is_none() { &args.command[..] } else { &[] };
        let (is_prepared, is_inspected) = (self.is_prepared, args.inspect);
        Started { command, is_prepared, is_inspected, ..Started::default() }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if let Some(tool) = args.tool {
        return valgrind::run(args, tool);
    }
    let recorded = record(args)?;
    let started = recorded.started(args);
    summary::print(&recorded.report, &recorded.summary, &args.output, started);
    if args.keep_raw {
        let raw = recorded.workspace.recording();
        note::say(format_args!("the recording as perf wrote it: {}", text::path(&raw)));
    } else {
        leftovers::remove(&recorded.report, &recorded.asked, recorded.begun);
    }
    let left = summary::leftovers(&recorded.report, recorded.workspace.folder());
    summary::print_rm_command(&left);
    let code = match recorded.ended.code() {
        // A recording without a command is meant to be ended by an interrupt.
        _ if recorded.ended.interrupted() && args.command.is_empty() => 0,
        code => code,
    };
    let raw = args.keep_raw.then(|| recorded.workspace.recording());
    let fields = inject::json::Fields::new(&recorded.report, &recorded.summary);
    let json = json::Recorded::new(fields, recorded.ended, code, raw, left);
    let printed = if args.json { inject::print_json(&json) } else { Ok(()) };
    match printed {
        // The exit code of the command takes precedence.
        Err(error) if code != 0 && !error.is_broken_pipe() => note::error(&error),
        Err(error) if !error.is_broken_pipe() => return Err(error),
        _ => {}
    }
    match code {
        0 if !args.allow_empty => inject::check_named(&recorded.report),
        0 => Ok(()),
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
    let placement = Placement::of(args)?;
    let raw = with_suffix(&args.output, ".raw");
    if args.force && args.keep_raw {
        workspace::remove(&raw)?;
    }
    let mut workspace = Workspace::new(&args.output, args.keep_raw.then_some(raw.as_path()))?;

    // With running processes, the command only determines how long to record.
    let is_prepared = !args.no_env && !args.command.is_empty() && !scope.is_named();
    let is_chosen = args.call_graph.is_some() || call_graph::is_chosen(&args.perf_option);
    let runtime = args.command.first().and_then(|program| runtimes::runtime_of(program));
    let choice = runtime
        .filter(|_| is_prepared && !is_chosen)
        .and_then(|runtime| call_graph::choice(runtime, &args.command));
    let chosen = args.call_graph.as_deref().or(choice.as_ref().map(|choice| &*choice.value));
    let mut prepared = if !is_prepared {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else {
        let stacks = match chosen {
            Some(how) if how.starts_with(DWARF) => Stacks::Copied,
            _ => Stacks::FramePointers,
        };
        // With the bridge, the library would announce the map's code a second time.
        let maps = match args.bridge && args.duration.is_none() {
            true => Maps::InsteadOfDumps,
            false => Maps::BesideDumps,
        };
        Preparation::of(&args.command, workspace.folder(), stacks, maps)?
    };
    print_preparation(&prepared);
    if args.bridge {
        add_bridge(&mut prepared)?;
        // perf records where dumps are: their code would be announced twice.
        prepared.variables.insert(bridge::WHAT.into(), "maps".into());
    }

    let ask = !args.no_env && !args.held;
    let jvms = match &scope {
        _ if args.held => Jvms::default(),
        Scope::Processes(pids) => Jvms::named(pids, ask, args.call_graph.as_deref()),
        _ if ask => Jvms::among(&scope.pids(), args.call_graph.as_deref()),
        _ => Jvms::default(),
    };
    let inspected =
        if args.inspect { Inspected::named(&scope.pids()) } else { Inspected::default() };
    let choice = choice.or_else(|| match jvms.need_copies() {
        _ if is_chosen => None,
        true => Some(Choice::copies("JVMs without frame pointers")),
        false => inspected.call_graph(),
    });
    if let Some(choice) = &choice {
        note::say(format_args!("stacks by {}: {}", choice.options(), choice.reason));
    }
    let mut perf = perf_record(args, choice.as_ref(), &workspace.recording(), &prepared);
    // The control words that `Logs::open` changes must be restored, however the recording ends.
    let caught = perf::catch_signals(&perf)?;
    let logs = Logs::open(&scope, ask);
    if let Ok(signal @ 1..) = i32::try_from(caught.load(Ordering::Relaxed)) {
        return Err(Error::Child(child::code_of_signal(signal)));
    }
    let begun = SystemTime::now();
    let added = Added::to(&prepared, std::env::var_os("NODE_OPTIONS").as_deref());
    let following = Following::start(&scope, added);
    let mut users = scope::users(&scope.pids());
    let memory = (!args.no_memory).then(|| MemoryReader::start(&scope, workspace.folder()));
    let registered = RegisteredReader::start(&scope, args.exact_times);
    let gone = GoneFilesReader::start(&scope);
    let limit = args.duration.as_deref().filter(|_| !prepared.command.is_empty());
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds.parse().ok()?).ok());
    let ended = perf::run_for(&mut perf, perf_access::MISSING, limit)?;
    let ended = if ended.is_terminated() { ended_with_target(ended, args, &scope) } else { ended };
    let memory = memory.map(MemoryReader::finish).unwrap_or_default();
    let gone = gone.finish();
    // Include children that were started during the recording and still run.
    let pids = scope.with_children();
    for (pid, user) in scope::users(&pids) {
        users.entry(pid).or_insert(user);
    }
    let seen = following.seen();
    for (pid, user) in seen.users {
        users.entry(pid).or_insert(user);
    }
    let mut dumps = logs.collect(&pids, workspace.folder());
    dumps.extend(registered.finish(workspace.folder(), &dumps));
    perf::end_by_signals(&perf)?;
    let recording = workspace.recording();
    // perf creates the file before it knows whether it may record.
    if fs::metadata(&recording).is_ok_and(|file| file.is_file() && file.len() == 0)
        || fs::metadata(&recording).is_err()
    {
        if ended.interrupted() {
            return Err(Error::Child(ended.code()));
        }
        let recorded = match scope {
            Scope::All => Recorded::All,
            _ => Recorded::Own,
        };
        return Err(perf::refused(&perf, ended, recorded));
    }
    // JVMs that still run write maps of the code that they compiled during the recording.
    jvms.finish(if ask || scope.is_named() { &pids } else { &[] });
    inspected.finish();

    let injected = inject::inject(&inject::Args {
        input: recording.clone(),
        output: Some(args.output.clone()),
        jitdump: args.jitdump.clone(),
        perf_map: named_maps(&args.perf_map, &scope),
        v8_log: Vec::new(),
        memory,
        aux_dir: vec![workspace.folder().to_owned()],
        image_dir: Some(placement.images.clone()),
        force: args.force,
        keep_old: placement.old.clone(),
        allow_empty: true,
        buildid_cache: args.buildid_cache,
        no_inferred_names: false,
        lines: LineTable::default(),
        sources: args.sources.clone(),
        json: false,
        users,
        logs: dumps,
        processes: seen.processes,
        gone: gone.into(),
    });
    match injected {
        Ok(report) => {
            let images = report.images.iter().map(|image| &image.path);
            placement.finish(images.chain(&report.kept).map(PathBuf::as_path));
            let summary = SampleSummary::read(&args.output)?;
            let asked = seen.asked;
            Ok(RecordingResult { report, summary, ended, is_prepared, asked, begun, workspace })
        }
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

/// How a recording ended whose command perf ended with SIGTERM, as it does if the recorded processes have ended.
fn ended_with_target(ended: RecordingEnd, args: &Args, scope: &Scope) -> RecordingEnd {
    // Then the command is our own, which ends when the time is over.
    if args.command.is_empty() {
        return ended.complete();
    }
    if !scope.is_named() || scope.pids().into_iter().any(process::is_running) {
        return ended;
    }
    note::say("the recorded process has ended, so perf ended the command with SIGTERM");
    ended.complete()
}

/// The perf maps that the user named. If one process is recorded by its id, they are its own, unless the user says otherwise.
fn named_maps(maps: &[Named], scope: &Scope) -> Vec<Named> {
    let only = match scope {
        Scope::Processes(pids) if pids.len() == 1 => pids.first().copied(),
        _ => None,
    };
    let of = |map: &Named| Named { pid: map.pid.or(only), path: map.path.clone() };
    maps.iter().map(of).collect()
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
    if args.inspect && args.pid.is_none() {
        return Err(Error::Usage(
            "--inspect needs a running process (-p PID); a command is prepared when it is started"
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
    let raw = with_suffix(&args.output, ".raw");
    if args.keep_raw && !args.force && raw.symlink_metadata().is_ok() {
        return Err(Error::Refused(format!(
            "{}: already exists; use --force to replace it, or write elsewhere with -o FILE",
            text::path(&raw)
        )));
    }
    Ok(())
}

/// The command that records.
fn perf_record(
    args: &Args,
    choice: Option<&Choice>,
    recording: &Path,
    prepared: &Preparation,
) -> Command {
    let chosen = choice.map(|choice| &*choice.value);
    let call_graph = args.call_graph.as_deref().or(chosen).unwrap_or("fp");
    let mut perf = Command::new("perf");
    // This is the clock of jitdumps. Later options win, so the user's options override this one.
    perf.args(["record", "-k", "mono", "-o"]).arg(recording);
    let verbosity = console::verbosity();
    perf.args((0..verbosity).map(|_| "-v"));
    if verbosity == 0 && !args.perf_option.iter().any(|option| option == "-v") {
        // perf would name an intermediate file.
        perf.arg("-q");
    }
    if !args.buildid_cache {
        perf.arg("--no-buildid-cache");
    }
    if call_graph != "none" {
        perf.arg("--call-graph").arg(if call_graph == DWARF { DWARF_SIZED } else { call_graph });
    }
    let frequency = choice.and_then(|choice| choice.frequency.as_deref());
    if let Some(frequency) = frequency.filter(|_| !call_graph::is_rate_chosen(&args.perf_option)) {
        perf.args(["-F", frequency]);
    }
    if let Some(pid) = &args.pid {
        perf.arg("-p").arg(pid);
    }
    if prepared.command.first().is_some_and(|program| runtimes::is_qemu_user(program)) {
        // For QEMU, the guest's program and libraries are data.
        perf.arg("--data");
    }
    perf.args(&args.perf_option);
    if !prepared.command.is_empty() {
        perf.arg("--").args(&prepared.command);
    } else if let Some(seconds) = &args.duration {
        perf.args(["--", "sleep", seconds]);
    }
    perf.envs(&prepared.variables);
    perf
}
