//! Runs `perf record`, and survives the signals that end the recording.

use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use rustix::process::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::perf_access::{Obstacle, Recorded};
use crate::text::shell_word;
use crate::{Error, Result, child};

/// How a recording ended.
#[derive(Clone, Copy, Debug)]
pub struct RecordingEnd {
    /// The exit status of perf, which perf derives from that of the recorded command.
    status: ExitStatus,
    /// The signal that asked us to end, if any.
    signal: Option<i32>,
}

impl RecordingEnd {
    /// Whether a signal ended the recording, rather than the end of the command.
    pub fn interrupted(self) -> bool {
        self.signal.is_some()
    }

    /// The exit code as a shell reports it: 128 + N for signal N.
    pub fn code(self) -> u8 {
        self.signal.map_or_else(|| child::exit_code(self.status), child::code_of_signal)
    }
}

/// Runs perf or another recording tool to its end. If it is not installed, the error is `missing`. SIGINT and SIGTERM are passed
/// on to the tool as SIGINT, upon which it stops recording, ends the command and completes its file.
pub fn run(perf: &mut Command, missing: &str) -> Result<RecordingEnd> {
    let (status, signal) = child::run(perf, missing, &SIGNALS, |_| Some(Signal::INT))?;
    Ok(RecordingEnd { status, signal })
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
