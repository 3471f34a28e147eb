//! Runs `perf record`, and survives the signals that end the recording.

use std::fs;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::perf_access::{Obstacle, Recorded};
use crate::process::children;
use crate::text::shell_word;
use crate::{Error, Result, child, note};

/// How a recording ended.
#[derive(Clone, Copy, Debug)]
pub struct RecordingEnd {
    /// The exit status of perf, which perf derives from that of the recorded command.
    status: ExitStatus,
    /// The signal that asked us to end, if any.
    signal: Option<i32>,
    /// Whether it was complete when perf ended its command: the time was over, or the recorded process had ended.
    is_complete: bool,
}

impl RecordingEnd {
    /// Whether a signal ended the recording, rather than the end of the command.
    pub fn interrupted(self) -> bool {
        self.signal.is_some()
    }

    /// Whether perf ended its command, or says that a signal ended it.
    pub fn is_terminated(self) -> bool {
        self.signal.is_none() && child::exit_code(self.status) == child::code_of_signal(SIGTERM)
    }

    /// The recording is complete, though perf ended its command.
    pub fn complete(self) -> Self {
        Self { is_complete: true, ..self }
    }

    /// The exit code as a shell reports it: 128 + N for signal N.
    pub fn code(self) -> u8 {
        match self.signal {
            Some(signal) => child::code_of_signal(signal),
            None if self.is_complete => 0,
            None => child::exit_code(self.status),
        }
    }
}

/// Runs perf or another recording tool to its end. If it is not installed, the error is `missing`. SIGINT and SIGTERM are passed
/// on to the tool as SIGINT, upon which it stops recording, ends the command and completes its file.
pub fn run(perf: &mut Command, missing: &str) -> Result<RecordingEnd> {
    run_for(perf, missing, None)
}

/// The same. If perf's command runs for longer than `limit`, perf is stopped, as by SIGINT.
pub fn run_for(perf: &mut Command, missing: &str, limit: Option<Duration>) -> Result<RecordingEnd> {
    let is_over = AtomicBool::new(false);
    let stop = |perf: Pid, ended: &Receiver<()>| {
        if let Some(limit) = limit
            && is_reached(limit, perf, ended)
        {
            is_over.store(true, Ordering::Relaxed);
            note::say(format_args!(
                "stopped after {} s: perf ends the command with SIGTERM, and waits for its end",
                limit.as_secs_f64()
            ));
            // This fails if perf has just ended.
            _ = kill_process(perf, Signal::INT);
        }
    };
    let (status, signal) = child::run_beside(perf, missing, &SIGNALS, |_| Some(Signal::INT), stop)?;
    Ok(RecordingEnd { status, signal, is_complete: is_over.into_inner() })
}

/// Waits until perf's command has run for the time `limit`. False if perf ends before.
fn is_reached(limit: Duration, perf: Pid, ended: &Receiver<()>) -> bool {
    /// Only a command that is perf itself has not started by then, as far as this can be seen.
    const LONGEST_START: Duration = Duration::from_secs(10);
    let begun = Instant::now();
    while !runs_command(perf) && begun.elapsed() < LONGEST_START {
        if ended.recv_timeout(Duration::from_millis(5)) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
    }
    ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)
}

/// Whether perf has started the command: its child runs another program. True if this cannot be seen.
fn runs_command(perf: Pid) -> bool {
    let pid = perf.as_raw_nonzero().get().unsigned_abs();
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program(pid);
    let other = |child: &u32| program(*child) != own;
    children(pid).is_none_or(|children| children.iter().any(other))
}

/// The signals that end a recording.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Catches [`SIGNALS`], which then no longer end this command. The result holds the last one that arrived, or 0.
pub fn catch_signals(perf: &Command) -> Result<Arc<AtomicUsize>> {
    let caught = Arc::new(AtomicUsize::new(0));
    for signal in SIGNALS {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, Arc::clone(&caught), number)
            .map_err(Error::file(perf.get_program()))?;
    }
    Ok(caught)
}

/// Makes [`SIGNALS`] end this command again. The recording stays where it is.
pub fn end_by_signals(perf: &Command) -> Result<()> {
    for signal in SIGNALS {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always)
            .map_err(Error::file(perf.get_program()))?;
    }
    Ok(())
}

/// The error for a missing recording: why perf wrote none, and what to run next.
pub fn refused(perf: &Command, ended: RecordingEnd, recorded: Recorded) -> Error {
    let mut text = format!(
        "perf recorded nothing (exit code {}); to see why, run: {}",
        ended.code(),
        command_line(perf)
    );
    if let Some(obstacle) = Obstacle::of_kernel(recorded) {
        text.push_str(&format!("; {obstacle}"));
    }
    Error::NothingRecorded(text)
}

/// The command line for a shell, without `-q`, so that perf prints its messages.
fn command_line(perf: &Command) -> String {
    let words = perf.get_args().filter(|option| *option != "-q").map(shell_word);
    std::iter::once("perf".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
