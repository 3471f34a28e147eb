//! Runs a command, waits for it, and passes on the signals that we get.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::text::shell_word;
use crate::{Error, Result, descriptors, note};

/// Runs a command that has the terminal to its end. If it is not installed, the error is `missing`.
///
/// The terminal sends its signals to the whole foreground process group, so the command gets them anyway. Signals sent to us
/// alone are passed on.
pub fn run_in_foreground(command: &mut Command, missing: &str) -> Result<ExitStatus> {
    let hand_on = |signal| match signal {
        SIGTERM => Some(Signal::TERM),
        SIGHUP => Some(Signal::HUP),
        _ => None,
    };
    let (status, _) = run(command, missing, &[SIGINT, SIGQUIT, SIGTERM, SIGHUP], hand_on)?;
    Ok(status)
}

/// Runs a command to its end. If it is not installed, the error is `missing`. Each of `signals` that arrives is passed on as the
/// signal that `hand_on` returns for it, if any. Returns how the command ended, and the first signal that arrived.
pub fn run(
    command: &mut Command,
    missing: &str,
    signals: &[i32],
    hand_on: fn(i32) -> Option<Signal>,
) -> Result<(ExitStatus, Option<i32>)> {
    run_beside(command, missing, signals, hand_on, |_, _| {})
}

/// The same. `beside` runs in another thread, with the command's process; its channel is disconnected when the command has ended.
pub fn run_beside(
    command: &mut Command,
    missing: &str,
    signals: &[i32],
    hand_on: fn(i32) -> Option<Signal>,
    beside: impl FnOnce(Pid, &Receiver<()>) + Send,
) -> Result<(ExitStatus, Option<i32>)> {
    let program = command.get_program().to_owned();
    let failed = |source: io::Error| Error::File { path: program.clone().into(), source };
    let mut signals = Signals::new(signals).map_err(failed)?;
    let handle = signals.handle();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    note::detail(format_args!("running: {}", words.map(shell_word).collect::<Vec<_>>().join(" ")));
    descriptors::restore_in(command);
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
                    // This fails if the command has just ended.
                    _ = kill_process(pid, signal);
                }
            }
            first
        });
        let (is_running, ended) = channel();
        scope.spawn(move || beside(pid, &ended));
        let status = child.wait();
        drop(is_running);
        handle.close();
        (status, caught.join().unwrap_or_default())
    });
    Ok((status.map_err(failed)?, first))
}

/// The exit code as a shell reports it: 128 + N for signal N.
pub fn exit_code(status: ExitStatus) -> u8 {
    match status.signal() {
        Some(signal) => code_of_signal(signal),
        None => code(status.code().unwrap_or(1)),
    }
}

/// The exit code of a command that this signal ended.
pub fn code_of_signal(signal: i32) -> u8 {
    code(128 + signal)
}

fn code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
