//! Debuggers without a script. They know what a process registers by itself, so it is asked to register its code. lldb also gets the
//! code as of now: a process registers nothing before it announces again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jitdump::extension::control;

use super::debugger::{self, Debugger, DebuggerKind};
use super::live;
use super::server::Subject;
use super::shown::{Shown, folder_in};
use super::sources::Sources;
use crate::files::{Kind, Named};
use crate::process::{self, Log};
use crate::{Error, Result, note};

/// How long to wait for the process to register its code.
const WAIT: Duration = Duration::from_secs(1);

/// Runs the debugger for a process or a core file. A process that was asked to register its code stops doing so afterwards.
///
/// # Errors
/// If the debugger cannot be started, or fails.
pub fn debug(
    mut debugger: Debugger,
    of: &Subject,
    program: Option<&Path>,
    named: Vec<(Kind, Named)>,
) -> Result<()> {
    let logs = match of {
        Subject::Pid(pid) => process::logs_for_requests(*pid),
        Subject::Core(_) => Ok(Vec::new()),
    };
    let logs = logs.unwrap_or_else(|error| {
        // The debugger says more.
        note::warning(error);
        Vec::new()
    });
    let is_unregistered = |log: &&Log| log.is_own() && log.head.control & control::GDB == 0;
    let asked: Vec<&Log> = logs.iter().filter(is_unregistered).collect();
    let has_registered = !logs.is_empty() && asked.iter().all(|log| has_registered(log));
    let folder = tempfile::Builder::new()
        .prefix("jitscribe-debug-")
        .tempdir()
        .map_err(Error::file(std::env::temp_dir()))?;
    if debugger.kind() == DebuggerKind::Lldb && !has_registered {
        let shown = Shown::new(folder_in(folder.path(), 0)?);
        match symbol_files(of, named, shown) {
            Ok(files) => debugger.add_modules(&files),
            Err(error) => note::warning(error),
        }
    }
    let result = debugger::run(&mut match of {
        Subject::Pid(pid) => debugger.attach(*pid),
        Subject::Core(core) => debugger.core(core, program),
    });
    for log in asked {
        // Most often the process has ended with the debugger.
        let _ = log.request(log.head.control | control::REQUEST);
    }
    result
}

/// Asks a process to register its code. Whether it has done so.
fn has_registered(log: &Log) -> bool {
    let control = log.head.control | control::LOG | control::GDB | control::REQUEST;
    match log.request(control).and_then(|_| log.wait(WAIT)) {
        Ok(head) if head.control & control::REQUEST == 0 => true,
        Ok(_) => {
            note::warning(format_args!(
                "process {} has not registered its code with debuggers yet: it does so with its next announcement",
                log.pid
            ));
            false
        }
        Err(error) => {
            note::warning(error);
            false
        }
    }
}

/// Symbol files of the code as of now.
fn symbol_files(of: &Subject, named: Vec<(Kind, Named)>, mut shown: Shown) -> Result<Vec<PathBuf>> {
    let mut sources = Sources::with_named(named);
    of.read(&mut sources)?;
    for cause in std::mem::take(&mut sources.notes) {
        note::say(cause);
    }
    let (change, _) = live::show(&sources, &[], &mut shown)?;
    Ok(change.add)
}
