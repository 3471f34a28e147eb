//! `jitscribe debug`: gdb or lldb, with the JIT-compiled code of the debugged process.
//!
//! The debugger runs a script (`gdb.py`, `lldb.py`), which starts a server ([`server`]) and asks it at each stop for symbol files
//! of the code that is new ([`sources`] reads what there is, [`live`] finds out what is live, [`shown`] keeps the files).

mod debugger;
mod executable_memory;
mod live;
mod registered;
mod server;
mod shown;
mod sources;
mod switch;
mod unwind;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::files::{Kind, Named};
use crate::record::print_preparation;
use crate::runtimes::Preparation;
use crate::text::Out;
use crate::{Error, Result, bridge, note};
use debugger::not_started;
pub use debugger::{Debugger, DebuggerKind};
use server::Subject;

/// Debug a process, a core file or a command, with its JIT-compiled code
///
/// Starts gdb (or lldb) with a script that keeps it informed about JIT-compiled code: names, source lines, inlined calls, breakpoints and
/// call stacks. Whenever the process stops, the script reads what the process has announced since, before the debugger prints anything.
/// The process needs no preparation if it links the jitscribe library, and none if it has written a jitdump or a perf map.
///
/// Within the debugger, `jitscribe info` shows what is known, and `jitscribe refresh` reads it again.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jitscribe debug [OPTIONS] -p PID\n       \
                      jitscribe debug [OPTIONS] --core FILE [PROGRAM]\n       \
                      jitscribe debug [OPTIONS] -- COMMAND...",
    after_help = "EXAMPLES:
  jitscribe debug -p 4711                       attach to a process
  jitscribe debug --core core ./program         examine a core file
  jitscribe debug --core core --perf-map perf-7.map ./program
                                                the same, with a perf map that was moved
  jitscribe debug -- node app.js                run a command
  jitscribe debug --arg=-batch --arg=-ex --arg=bt -p 4711
                                                print the call stack and detach

  # the same for every gdb: add to ~/.gdbinit
  jitscribe debug --print-script > ~/.jitscribe.py
  echo 'source ~/.jitscribe.py' >> ~/.gdbinit"
)]
pub struct Args {
    /// Attach to this process
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["core", "command"])]
    pid: Option<u32>,

    /// Examine this core file
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    core: Option<PathBuf>,

    /// With --core: the program that dumped core
    #[arg(value_name = "PROGRAM", requires = "core")]
    program: Option<PathBuf>,

    /// Read this perf map instead of searching for one [default: /tmp/perf-PID.map; for a core file, also beside it]
    #[arg(long, value_name = "[PID=]FILE")]
    perf_map: Vec<Named>,

    /// Read this jitdump instead of searching for those that the process has mapped
    #[arg(long, value_name = "[PID=]FILE")]
    jitdump: Vec<Named>,

    /// Start lldb instead of gdb
    #[arg(long)]
    lldb: bool,

    /// The debugger to start, if it is not on the PATH
    #[arg(long, value_name = "PATH")]
    debugger: Option<PathBuf>,

    /// Pass one word on to the debugger; repeat it for more words
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    arg: Vec<OsString>,

    /// Leave the command and its environment unchanged: only what its runtimes announce by themselves is shown
    #[arg(long)]
    no_env: bool,

    /// Print the script, for `source` in ~/.gdbinit or `command script import` in ~/.lldbinit. It runs the `jitscribe` that is on the PATH
    #[arg(long, conflicts_with_all = ["pid", "core", "command"])]
    print_script: bool,

    /// Answer the requests of a script
    #[arg(long, hide = true, conflicts_with_all = ["pid", "core", "command", "print_script"])]
    serve: bool,

    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    /// The files that the user named.
    fn named(&self) -> Vec<(Kind, Named)> {
        let maps = self.perf_map.iter().map(|map| (Kind::PerfMap, map.clone()));
        let dumps = self.jitdump.iter().map(|dump| (Kind::Jitdump, dump.clone()));
        maps.chain(dumps).collect()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let kind = if args.lldb { DebuggerKind::Lldb } else { DebuggerKind::Gdb };
    if args.serve {
        return server::serve(args.named());
    }
    if args.print_script {
        let mut out = Out::new();
        std::io::Write::write_all(&mut out, kind.script().as_bytes()).map_err(Error::Stdout)?;
        return out.finish();
    }
    let debugger = || {
        let debugger = Debugger::new(kind, args.debugger.as_deref(), &args.arg)?;
        debugger.with_sources(&args.named())
    };
    let subject = match (args.pid, &args.core) {
        (Some(pid), _) => Some(Subject::Pid(pid)),
        (_, Some(core)) => {
            Some(Subject::Core(std::path::absolute(core).map_err(Error::file(core))?))
        }
        (None, None) => None,
    };
    if let Some(subject) = subject {
        let (debugger, program) = (debugger()?, args.program.as_deref());
        if !debugger.has_script() {
            return registered::debug(debugger, &subject, program, args.named());
        }
        return replace_by(match subject {
            Subject::Pid(pid) => debugger.attach(pid),
            Subject::Core(core) => debugger.core(&core, program),
        });
    }
    if args.command.is_empty() {
        return Err(Error::Usage(
            "nothing to debug. Pass -p PID, --core FILE, or a command after `--`".into(),
        ));
    }
    run_command(debugger()?, args)
}

/// Runs the debugger in place of this process, so that the terminal and signals are the debugger's.
fn replace_by(mut debugger: Command) -> Result<()> {
    crate::descriptors::restore_in(&mut debugger);
    let error = debugger.exec();
    Err(not_started(debugger.get_program(), error))
}

/// Runs a command in the debugger.
fn run_command(debugger: Debugger, args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("jitscribe-debug-")
        .tempdir()
        .map_err(Error::file(std::env::temp_dir()))?;
    let mut prepared = if args.no_env {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else {
        Preparation::for_debugger(&args.command, folder.path())?
    };
    // Programs that link the library announce their code without a file.
    for ours in ["JITSCRIBE", "JITSCRIBE_DIR"] {
        prepared.variables.remove(OsStr::new(ours));
    }
    print_preparation(&prepared);
    let library = if args.no_env { None } else { preload(&prepared) };
    let mut command = debugger.launch(&prepared.command, library.as_deref());
    command.envs(&prepared.variables);
    debugger::run(&mut command)
}

/// The library to load into the command. Without it, runtimes still write files.
fn preload(prepared: &Preparation) -> Option<PathBuf> {
    let library = bridge::library();
    match library {
        Ok(library) => {
            bridge::warn_of_obstacle(prepared.command.first()?);
            Some(library)
        }
        Err(error) => {
            note::warning(error);
            None
        }
    }
}
