//! `jitscribe run`: a command whose jitted code is announced while it runs, under a debugger or by itself.
//!
//! [`mod@words`] makes of it a `jitscribe record` where the tool is one that records.

mod words;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::inject::shell_word;
use crate::record::summary::say_left_files;
use crate::record::{check_program, say_flags};
use crate::runtimes::Preparation;
use crate::{Error, Result, bridge, child};

pub use words::arguments;

/// Run a command, and have tools know its jitted code at once
///
/// Tells the runtimes that it knows to write down what code they make, and loads a library into the command's processes
/// that announces it as they write: to valgrind and debuggers with names, stacks and lines while it runs, and to
/// `jitscribe record -p`, `dump -p` and `ctl -p` with the code's bytes.
///
/// With a tool, options that are not listed here are that tool's own. With valgrind's tools and perf it is the same as
/// `jitscribe record --bridge`, and takes the same options.
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

  # looked into from elsewhere
  jitscribe run -- node app.js &
  jitscribe dump -p $(pgrep -n node)"
)]
pub struct Args {
    /// The tool: gdb or lldb; valgrind (which is memcheck), callgrind, cachegrind, massif, dhat; perf
    #[arg(long, value_name = "TOOL", value_parser = debugger)]
    with: Option<Debugger>,
    /// Leave the command and its environment as they are but for the library: what its runtimes write by themselves
    /// is all there is
    #[arg(long)]
    no_env: bool,
    /// Pass one word on to the tool, as is done with all options that are not listed here
    #[arg(long, value_name = "WORD", require_equals = true, allow_hyphen_values = true)]
    tool_option: Vec<OsString>,
    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A tool that runs the command by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Debugger {
    Gdb,
    Lldb,
}

/// By its name; tools that record are not asked for here ([`arguments`]).
fn debugger(name: &str) -> Result<Debugger, String> {
    match name {
        "gdb" => Ok(Debugger::Gdb),
        "lldb" => Ok(Debugger::Lldb),
        _ => Err("the tools are gdb, lldb, valgrind, memcheck, callgrind, cachegrind, massif, dhat, perf".into()),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let Some(program) = args.command.first() else {
        return Err(Error::Usage(
            "what is to be run? jitscribe run -- COMMAND... (mind the two dashes)".into(),
        ));
    };
    if args.with.is_none() && !args.tool_option.is_empty() {
        let first = args.tool_option.first().cloned().unwrap_or_default();
        return Err(Error::Usage(format!("{}: there is no tool to take it", first.display())));
    }
    let library = bridge::library()?;
    check_program(program)?;
    let may_load = bridge::may_load_into(program);
    let folder = tempfile::Builder::new()
        .prefix("jitscribe-run-")
        .tempdir()
        .map_err(Error::file(std::env::temp_dir()))?;
    let mut prepared = if args.no_env {
        Preparation { command: args.command.clone(), ..Preparation::default() }
    } else if args.with.is_some() {
        Preparation::for_debugger(&args.command, folder.path())?
    } else {
        Preparation::of(&args.command, folder.path(), false)?
    };
    // What links the library needs no file to be known.
    for ours in ["JITSCRIBE", "JITSCRIBE_DIR"] {
        prepared.variables.remove(OsStr::new(ours));
    }
    say_flags(&prepared);
    let library = may_load.then(|| bridge::value(&library));
    let mut command = command(args, &prepared, library.as_deref());
    let written = folder.path().join("written");
    File::create(&written).map_err(Error::file(&written))?;
    command.envs(&prepared.variables).env(bridge::FILES, &written);
    // What the terminal sends goes to all who are there, and is the command's to judge; what is sent to us alone is handed
    // on.
    let hand_on = |signal| match signal {
        SIGTERM => Some(Signal::TERM),
        SIGHUP => Some(Signal::HUP),
        _ => None,
    };
    let signals = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];
    let (status, _) = child::run(&mut command, missing(args.with), &signals, hand_on)?;
    if let Ok(written) = fs::read(&written) {
        let paths = written.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        say_left_files(paths.map(|path| Path::new(OsStr::from_bytes(path))), folder.path());
    }
    match child::exit_code(status) {
        0 => Ok(()),
        code => Err(Error::Child(code)),
    }
}

/// What is started. The library is for the command alone, and not for a tool.
fn command(args: &Args, prepared: &Preparation, preload: Option<&OsStr>) -> Command {
    let setting = preload.map(|preload| {
        let mut setting = OsString::from(bridge::VARIABLE);
        setting.push("=");
        setting.push(preload);
        shell_word(Path::new(&setting))
    });
    let mut command = match args.with {
        None => {
            let mut words = prepared.command.iter();
            let mut command = Command::new(words.next().map_or(OsStr::new(""), |word| word));
            command.args(words);
            if let Some(preload) = preload {
                command.env(bridge::VARIABLE, preload);
            }
            return command;
        }
        Some(Debugger::Gdb) => {
            let mut gdb = Command::new("gdb");
            if let Some(setting) = setting {
                gdb.arg("-iex").arg(format!("set exec-wrapper env {setting}"));
            }
            gdb.args(&args.tool_option).arg("--args");
            gdb
        }
        Some(Debugger::Lldb) => {
            let mut lldb = Command::new("lldb");
            if let Some(setting) = setting {
                lldb.arg("-O").arg(format!("settings set target.env-vars {setting}"));
            }
            lldb.args(&args.tool_option).arg("--");
            lldb
        }
    };
    // Debuggers start programs.
    let script = prepared.command.first().and_then(|program| bridge::script(program));
    let behind = usize::from(script.is_some());
    command.args(script.unwrap_or_default()).args(prepared.command.iter().skip(behind));
    command
}

fn missing(with: Option<Debugger>) -> &'static str {
    match with {
        None => "the command cannot be run",
        Some(Debugger::Gdb) => "there is no gdb here; on Debian: apt-get install gdb",
        Some(Debugger::Lldb) => "there is no lldb here; on Debian: apt-get install lldb",
    }
}
