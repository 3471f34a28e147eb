//! `jitscribe debug`: gdb or lldb, with the JIT-compiled code of the debugged process.
//!
//! The debugger runs a script (`gdb.py`, `lldb.py`), which starts a server ([`server`]) and asks it at each stop for symbol files
//! of the code that is new ([`sources`] reads what there is, [`live`] finds out what is live, [`shown`] keeps the files).

mod live;
mod server;
mod shown;
mod sources;
mod unwind;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::runtimes::Preparation;
use crate::text::Out;
use crate::{Error, Result, bridge, child, companion, note, text};

/// The script for gdb.
const GDB: &str = concat!(include_str!("gdb.py"), include_str!("gdb_unwinder.py"), "\nstart()\n");

/// Debug a process, a core file or a command, with its JIT-compiled code
///
/// Starts gdb with a script that keeps it informed about JIT-compiled code: names, source lines, inlined calls, breakpoints and
/// call stacks. Whenever the process stops, the script reads what the process has announced since, before gdb prints anything.
/// The process needs no preparation if it links the jitscribe library, and none if it has written a jitdump or a perf map.
///
/// Within gdb, `jitscribe info` shows what is known, and `jitscribe refresh` reads it again.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jitscribe debug [OPTIONS] -p PID\n       \
                      jitscribe debug [OPTIONS] --core FILE [PROGRAM]\n       \
                      jitscribe debug [OPTIONS] -- COMMAND...",
    after_help = "EXAMPLES:
  jitscribe debug -p 4711                       attach to a process
  jitscribe debug --core core ./program         examine a core file
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

    /// The debugger to start [default: gdb]
    #[arg(long, value_name = "PATH")]
    debugger: Option<PathBuf>,

    /// Pass one word on to the debugger; repeat it for more words
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    arg: Vec<OsString>,

    /// Leave the command and its environment unchanged: only what its runtimes announce by themselves is shown
    #[arg(long)]
    no_env: bool,

    /// Print the script for gdb, for `source` in ~/.gdbinit. It runs the `jitscribe` that is on the PATH
    #[arg(long, conflicts_with_all = ["pid", "core", "command"])]
    print_script: bool,

    /// Answer the requests of a script
    #[arg(long, hide = true, conflicts_with_all = ["pid", "core", "command", "print_script"])]
    serve: bool,

    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.serve {
        return server::serve();
    }
    if args.print_script {
        let mut out = Out::new();
        std::io::Write::write_all(&mut out, GDB.as_bytes()).map_err(Error::Stdout)?;
        return out.finish();
    }
    if let Some(pid) = args.pid {
        let mut gdb = debugger(args)?;
        gdb.arg("-p").arg(pid.to_string());
        return replace_by(gdb);
    }
    if let Some(core) = &args.core {
        let mut gdb = debugger(args)?;
        gdb.args(&args.program).arg("-c").arg(core);
        return replace_by(gdb);
    }
    if args.command.is_empty() {
        return Err(Error::Usage(
            "nothing to debug. Pass -p PID, --core FILE, or a command after `--`".into(),
        ));
    }
    run_command(args)
}

/// The debugger, with its script and the user's options. The script comes last, so that it sees a hook that the user defines
/// with `-iex`.
fn debugger(args: &Args) -> Result<Command> {
    let program = args.debugger.as_deref().unwrap_or(Path::new("gdb"));
    let mut gdb = Command::new(program);
    if has_python(program)? {
        gdb.args(&args.arg).arg("-iex").arg(start_script());
    } else {
        gdb.args(&args.arg);
        note::warning(format_args!(
            "{} has no Python: only code that the process registers with gdb by itself is shown",
            text::path(program)
        ));
    }
    Ok(gdb)
}

/// Whether this gdb can run scripts in Python.
fn has_python(gdb: &Path) -> Result<bool> {
    let mut asked = Command::new(gdb);
    asked.arg("--configuration").stdin(Stdio::null()).stderr(Stdio::null());
    let output = asked.output().map_err(|error| not_started(gdb, error))?;
    let text = output.stdout;
    Ok(!text.windows(16).any(|part| part == b"--without-python"))
}

fn not_started(gdb: &Path, error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::Refused(missing(gdb));
    }
    Error::File { path: gdb.to_owned(), source: error }
}

fn missing(gdb: &Path) -> String {
    format!("{} is not installed; on Debian: apt-get install gdb", text::path(gdb))
}

/// A command of gdb that runs the script. This command's own path is encoded, as it may contain any character.
fn start_script() -> String {
    let own: String =
        companion::own().as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "python import os, subprocess; jitscribe_command = os.fsdecode(bytes.fromhex('{own}')); \
         exec(compile(subprocess.check_output([jitscribe_command, 'debug', '--print-script']), 'jitscribe', 'exec'), \
         {{'__name__': 'jitscribe_debug', 'COMMAND': jitscribe_command}})"
    )
}

/// Runs the debugger in place of this process, so that the terminal and signals are the debugger's.
fn replace_by(mut debugger: Command) -> Result<()> {
    crate::descriptors::restore_in(&mut debugger);
    let program = PathBuf::from(debugger.get_program());
    Err(not_started(&program, debugger.exec()))
}

/// Runs a command in the debugger.
fn run_command(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("jitscribe-debug-")
        .tempdir()
        .map_err(Error::file(std::env::temp_dir()))?;
    let mut gdb = debugger(args)?;
    let mut prepared = if args.no_env {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else {
        Preparation::for_debugger(&args.command, folder.path())?
    };
    // Programs that link the library announce their code without a file.
    for ours in ["JITSCRIBE", "JITSCRIBE_DIR"] {
        prepared.variables.remove(OsStr::new(ours));
    }
    crate::record::print_flags(&prepared);
    if !args.no_env
        && let Some(setting) = preload(&prepared)
    {
        gdb.arg("-iex").arg(format!("set exec-wrapper env {setting}"));
    }
    // A debugger cannot start a script, so it gets the script's interpreter.
    let script = prepared.command.first().and_then(|program| bridge::script(program));
    let behind = usize::from(script.is_some());
    gdb.arg("--args").args(script.unwrap_or_default());
    gdb.args(prepared.command.iter().skip(behind)).envs(&prepared.variables);
    // The terminal sends its signals to the whole foreground process group, so the debugger gets them anyway. Signals sent to
    // us alone are passed on.
    let hand_on = |signal| match signal {
        SIGTERM => Some(Signal::TERM),
        SIGHUP => Some(Signal::HUP),
        _ => None,
    };
    let signals = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];
    let gdb_path = PathBuf::from(gdb.get_program());
    let (status, _) = child::run(&mut gdb, &missing(&gdb_path), &signals, hand_on)?;
    match child::exit_code(status) {
        0 => Ok(()),
        code => Err(Error::Child(code)),
    }
}

/// The setting that loads the bridge into the command, as a word for the shell. Without the bridge, runtimes still write files.
fn preload(prepared: &Preparation) -> Option<String> {
    let program = prepared.command.first()?;
    match bridge::library() {
        Ok(library) => {
            bridge::warn_of_obstacle(program);
            Some(bridge::setting(&bridge::value(&library)))
        }
        Err(error) => {
            note::warning(error);
            None
        }
    }
}
