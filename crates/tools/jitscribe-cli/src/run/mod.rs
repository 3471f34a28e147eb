//! `jitscribe run`: runs a command, under a debugger or by itself, and announces its jitted code while it runs.
//!
//! If the tool is one that records, [`mod@words`] turns the command line into one of `jitscribe record`.

mod words;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::debug::{Debugger, DebuggerKind};
use crate::record::summary::list_leftover_files;
use crate::record::{check_program, print_preparation};
use crate::runtimes::{Maps, Preparation, Stacks};
use crate::{Error, Result, bridge, child, text};

pub use words::arguments;

/// Run a command and announce its jitted code to tools while it runs
///
/// Configures known runtimes to write jitdumps or perf maps, and loads a library into the command's processes that announces
/// the code as they write it: to valgrind and debuggers with names, call stacks and source lines while the command runs, and
/// to `jitscribe record -p`, `dump -p` and `ctl -p` with the code's bytes.
///
/// With a tool, options that are not listed here are passed on to it. For perf and the tools of valgrind, this is the same as
/// `jitscribe record --bridge` and takes the same options.
///
/// With a debugger, -q and -v are its options; to give them to jitscribe, type them before the verb:
/// jitscribe -q run --with gdb ...
///
/// The exit code is the command's own; 128 + N if signal N ended it.
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "jitscribe run [OPTIONS] -- COMMAND...\n       \
                      jitscribe run --with TOOL [OPTIONS] [TOOL OPTIONS] -- COMMAND...",
    after_help = "EXAMPLES:
  jitscribe run --with gdb -- rakudo-m app.raku
  jitscribe run --with gdb -batch -ex run -ex bt -- php app.php
  jitscribe run --with callgrind -- rakudo-m app.raku
  jitscribe run --with memcheck --leak-check=full -- ./my-runtime script

  # inspect the code of a running command
  jitscribe run -- node app.js &
  jitscribe dump -p $(pgrep -n node)"
)]
pub struct Args {
    /// The tool: gdb, lldb, valgrind (same as memcheck), memcheck, callgrind, cachegrind, massif, dhat or perf
    #[arg(long, value_name = "TOOL", value_parser = debugger)]
    with: Option<DebuggerKind>,
    /// Leave the command and its environment unchanged except for the library: only what its runtimes write by
    /// themselves is announced
    #[arg(long)]
    no_env: bool,
    /// Pass one word on to the tool; options that are not listed here are passed on automatically
    #[arg(long, value_name = "WORD", require_equals = true, allow_hyphen_values = true)]
    tool_option: Vec<OsString>,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Parses the name of a debugger. Tools that record never get here ([`arguments`]).
fn debugger(name: &str) -> Result<DebuggerKind, String> {
    match name {
        "gdb" => Ok(DebuggerKind::Gdb),
        "lldb" => Ok(DebuggerKind::Lldb),
        _ => Err("the tools are gdb, lldb, valgrind, memcheck, callgrind, cachegrind, massif, dhat, perf".into()),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let Some(program) = args.command.first() else {
        return Err(Error::Usage(
            "nothing to run. Pass a command after `--`: jitscribe run -- COMMAND...".into(),
        ));
    };
    if args.with.is_none() && !args.tool_option.is_empty() {
        let first = args.tool_option.first().cloned().unwrap_or_default();
        return Err(Error::Usage(format!(
            "{}: unknown option; options of a tool need --with TOOL",
            text::path(&first)
        )));
    }
    let library = bridge::library()?;
    check_program(program)?;
    bridge::warn_of_obstacle(program);
    let folder = tempfile::Builder::new()
        .prefix("jitscribe-run-")
        .tempdir()
        .map_err(Error::file(std::env::temp_dir()))?;
    let mut prepared = if args.no_env {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else if args.with.is_some() {
        Preparation::for_debugger(&args.command, folder.path())?
    } else {
        Preparation::of(&args.command, folder.path(), Stacks::FramePointers, Maps::InsteadOfDumps)?
    };
    // Programs that link the library announce their code without a file.
    for ours in ["JITSCRIBE", "JITSCRIBE_DIR"] {
        prepared.variables.remove(OsStr::new(ours));
    }
    print_preparation(&prepared);
    let mut command = command(args, &prepared, &library)?;
    let written = folder.path().join("written");
    File::create(&written).map_err(Error::file(&written))?;
    command.envs(&prepared.variables).env(bridge::FILES, &written);
    let missing = match args.with {
        None => "the command cannot be run".to_owned(),
        Some(_) => Debugger::missing(command.get_program()),
    };
    let status = child::run_in_foreground(&mut command, &missing)?;
    if let Ok(written) = fs::read(&written) {
        let paths = written.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        list_leftover_files(paths.map(|path| Path::new(OsStr::from_bytes(path))), folder.path());
    }
    match child::exit_code(status) {
        0 => Ok(()),
        code => Err(Error::Child(code)),
    }
}

/// The command line to start. The library is loaded only into the command, not into the tool.
fn command(args: &Args, prepared: &Preparation, library: &Path) -> Result<Command> {
    if let Some(kind) = args.with {
        let debugger = Debugger::new(kind, None, &args.tool_option)?;
        return Ok(debugger.launch(&prepared.command, Some(library)));
    }
    let mut words = prepared.command.iter();
    let mut command = Command::new(words.next().map_or(OsStr::new(""), |word| word));
    command.args(words).env(bridge::VARIABLE, bridge::value(library));
    Ok(command)
}
