//! A command that is waited for, and is told of the signals that we get.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::iterator::Signals;

use crate::{Error, Result};

/// Runs it to its end; `missing` is said where it is not installed. Of `signals`, each that comes is handed on as what `hand_on`
/// makes of it. Returns how it ended, and the first signal that came.
pub fn run(
    command: &mut Command,
    missing: &str,
    signals: &[i32],
    hand_on: fn(i32) -> Option<Signal>,
) -> Result<(ExitStatus, Option<i32>)> {
    let program = command.get_program().to_owned();
    let failed = |source: io::Error| Error::File { path: program.clone().into(), source };
    let mut signals = Signals::new(signals).map_err(failed)?;
    let handle = signals.handle();
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Refused(missing.into()),
        _ => failed(error),
    })?;
    let pid = Pid::from_child(&child);
    let (status, first) = thread::scope(|scope| {
        let caught = scope.spawn(move || {
            let mut first = None;
            for signal in signals.forever() {
                first.get_or_insert(signal);
                if let Some(signal) = hand_on(signal) {
                    // It may have ended at this moment; then there is nobody to tell.
                    _ = kill_process(pid, signal);
                }
            }
            first
        });
        let status = child.wait();
        handle.close();
        (status, caught.join().unwrap_or_default())
    });
    Ok((status.map_err(failed)?, first))
}

/// The exit code as a shell would say it: 128 + N for signal N.
pub fn exit_code(status: ExitStatus) -> u8 {
    match status.signal() {
        Some(signal) => code_of_signal(signal),
        None => code(status.code().unwrap_or(1)),
    }
}

/// The exit code for an end by this signal.
pub fn code_of_signal(signal: i32) -> u8 {
    code(128 + signal)
}

fn code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
