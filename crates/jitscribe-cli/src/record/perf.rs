//! Runs `perf record`, and outlives it when somebody interrupts.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Signal, geteuid};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{Error, Result, child};

/// How a recording ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What perf made its exit code of: the recorded command's.
    status: ExitStatus,
    /// The signal by which we were asked to end, if we were.
    signal: Option<i32>,
}

impl Ended {
    /// Whether somebody ended it, rather than the command.
    pub fn interrupted(self) -> bool {
        self.signal.is_some()
    }

    /// The exit code as a shell would say it: 128 + N for signal N.
    pub fn code(self) -> u8 {
        self.signal.map_or_else(|| child::exit_code(self.status), child::code_of_signal)
    }
}

/// What to type where there is no perf.
pub const MISSING: &str = "there is no perf here; on Debian: apt-get install linux-perf, elsewhere it \
                           comes with the kernel's tools";

/// Runs perf, or another that records, to its end; `missing` is said where it is not installed. An interrupt or a request to
/// terminate is handed on to it as an interrupt, upon which it stops recording, ends the command and completes its file.
pub fn run(perf: &mut Command, missing: &str) -> Result<Ended> {
    const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];
    let (status, signal) = child::run(perf, missing, &SIGNALS, |_| Some(Signal::INT))?;
    // From here on a signal ends us again; what was recorded stays where it is.
    for signal in SIGNALS {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always)
            .map_err(Error::file(perf.get_program()))?;
    }
    Ok(Ended { status, signal })
}

/// Why perf made no recording, and what to type.
pub fn refused(perf: &Command, ended: Ended) -> Error {
    let mut text = format!(
        "perf recorded nothing (it ended with {}); to see why, type: {}",
        ended.code(),
        command_line(perf)
    );
    if let Some(level) = paranoid().filter(|&level| level > 1 && !geteuid().is_root()) {
        text.push_str(&format!(
            "\nkernel.perf_event_paranoid is {level}, so this user may not record all there is: run \
             as root, or type: sudo sysctl kernel.perf_event_paranoid=1 (-1 for -a)"
        ));
    }
    Error::Refused(text)
}

/// What the kernel says of who may record.
fn paranoid() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// A command as one would type it, with perf talking.
fn command_line(perf: &Command) -> String {
    let word = |word: &OsStr| crate::inject::shell_word(Path::new(word));
    let words = perf.get_args().filter(|option| *option != "-q").map(word);
    std::iter::once("perf".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
