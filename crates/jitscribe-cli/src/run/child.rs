//! A command that is waited for.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{Error, Result};

/// Runs it to its end, and returns the exit code as a shell would say it. What the terminal sends goes to all who are
/// there, and is the command's to judge; what is sent to us alone is handed on.
pub fn run(command: &mut Command, missing: &str) -> Result<u8> {
    let program = command.get_program().to_owned();
    let failed = |source: io::Error| Error::File { path: program.clone().into(), source };
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).map_err(failed)?;
    let handle = signals.handle();
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Refused(missing.into()),
        _ => failed(error),
    })?;
    let pid = Pid::from_child(&child);
    let status = thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                // It may have ended at this moment; then there is nobody to tell.
                _ = match signal {
                    SIGTERM => kill_process(pid, Signal::TERM),
                    SIGHUP => kill_process(pid, Signal::HUP),
                    _ => Ok(()),
                };
            }
        });
        let status = child.wait();
        handle.close();
        status
    });
    let status = status.map_err(failed)?;
    let code = status.signal().map(|signal| 128 + signal).or(status.code()).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}
