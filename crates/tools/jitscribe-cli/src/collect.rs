//! `jitscribe collect`: records running processes in windows, and runs a command on each recording.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::text::shell_word;
use crate::windows::{RunningWindow, TICK, Window, WindowArgs, Windows};
use crate::{Error, Result, descriptors, note};

/// What stands for the recording in the command.
const RECORDING: &[u8] = b"{}";
/// No window is longer: a year.
const LONGEST: Duration = Duration::from_secs(31_536_000);
/// While one window is being recorded, the recording of another may be completed.
const AT_ONCE: usize = 2;
/// No more different messages are remembered.
const MESSAGES: usize = 256;

/// Record running processes all the time, and run a command on the recording of each window
///
/// The command exports or sends the recording, which is removed when the command has ended. The next window is recorded in the meantime.
/// JVMs are asked to load the agent, and processes with a code log that is off to turn it on, until collect ends.
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "jitscribe collect [OPTIONS] -a -- COMMAND... {}...\n       jitscribe collect [OPTIONS] -p PID[,PID...] -- COMMAND... {}...",
    after_help = "EXAMPLES:
  # tables for DuckDB, Spark and others: docs/fleet.md
  jitscribe collect -a -- jitscribe export --parquet /var/lib/jitscribe/fleet -i {}

  # to an OpenTelemetry collector; what it does not take is kept, and sent with a later window
  jitscribe collect -a -- jitscribe push -i {} --otlp http://collector:4318 --retry-for 5 --spool /var/spool/jitscribe"
)]
pub struct Args {
    #[command(flatten)]
    windows: WindowArgs,
    /// The length of a window in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = crate::record::seconds)]
    interval: String,
    /// Samples each second on each processor
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 19,
        value_parser = clap::value_parser!(u32).range(1..))]
    freq: u32,
    /// Stop after this many windows
    #[arg(short = 'n', long, value_name = "WINDOWS",
        value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The command; {} in its words stands for the recording
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let names_recording = |word: &OsString| with_recording(word, Path::new("")) != *word;
    if !args.command.iter().any(names_recording) {
        return Err(Error::Usage(format!(
            "{} does not say where the recording goes: write {{}} for it, as in: jitscribe export --parquet DIR -i {{}}",
            args.command.iter().map(shell_word).collect::<Vec<_>>().join(" ")
        )));
    }
    let windows = Windows::begin(&args.windows, args.freq, &args.interval, &["--quiet"])?;
    note::say(format_args!(
        "recording windows of {} seconds at {} Hz; Ctrl-C ends the last one early",
        args.interval, args.freq
    ));
    let (send, received) = sync_channel(1);
    let count = args.count.unwrap_or(u64::MAX);
    let length = args.interval.parse().ok();
    let length = length.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let length = length.unwrap_or(LONGEST).min(LONGEST);
    let ends = windows.ends();
    let recording = thread::spawn(move || {
        if let Err(error) = record(windows, (length, count), &send) {
            // Nothing receives it after an error.
            _ = send.send(Err(error));
        }
    });
    let handled = handle(&received, &args.command);
    // After an error, windows are still being recorded.
    ends.store(true, Ordering::Relaxed);
    drop(received);
    _ = recording.join();
    handled
}

/// Records windows until there are no more, or an error. Then none is being recorded any longer.
fn record(
    mut windows: Windows,
    planned: (Duration, u64),
    send: &SyncSender<Result<Window>>,
) -> Result<()> {
    let mut running = VecDeque::new();
    let recorded = record_until(&mut windows, &mut running, planned, send);
    windows.ends().store(true, Ordering::Relaxed);
    for mut window in running {
        while let Ok(None) = window.status() {
            thread::sleep(TICK);
        }
    }
    recorded
}

/// Records windows until there are no more. The next one begins when the time of the last one is over, while its recording is still being completed:
/// every window takes the same time to begin, so that none is missing between two.
fn record_until(
    windows: &mut Windows,
    running: &mut VecDeque<RunningWindow>,
    (length, count): (Duration, u64),
    send: &SyncSender<Result<Window>>,
) -> Result<()> {
    let (mut started, mut over) = (0, false);
    let mut next = Instant::now();
    loop {
        let now = Instant::now();
        if started < count && !over && now >= next && running.len() < AT_ONCE {
            // Where the last window began late, this one does, too.
            next = next.max(now.checked_sub(TICK).unwrap_or(now)) + length;
            started += 1;
            match windows.start()? {
                Some(window) => running.push_back(window),
                None => over = true,
            }
        }
        let status = running.front_mut().map(RunningWindow::status).transpose()?.flatten();
        if let Some(status) = status {
            let Some(window) = running.pop_front() else { continue };
            match windows.finish(window, status)? {
                Some(window) => hand_over(window, send),
                None => over = true,
            }
        } else if running.is_empty() && (over || started == count) {
            return Ok(());
        } else {
            // The processes may have ended early.
            over |= running.is_empty() && windows.are_over();
            thread::sleep(TICK);
        }
    }
}

/// Gives a window to the command, and waits while it has two.
fn hand_over(window: Window, send: &SyncSender<Result<Window>>) {
    let Err(TrySendError::Full(window)) = send.try_send(Ok(window)) else { return };
    let since = Instant::now();
    // Nothing receives it after an error.
    if send.send(window).is_ok() {
        note::warning(format_args!(
            "the command takes longer than a window: the next one may begin up to {:.1} s late; choose a longer --interval",
            since.elapsed().as_secs_f64()
        ));
    }
}

/// Runs the command on each window.
fn handle(windows: &Receiver<Result<Window>>, words: &[OsString]) -> Result<()> {
    let (mut all, mut failed) = (0_u64, 0_u64);
    let mut said = HashSet::new();
    for window in windows {
        let window = window?;
        all += 1;
        for message in &window.messages {
            // What is wrong with one window is usually wrong with all.
            if said.len() < MESSAGES && said.insert(message.clone()) {
                match message.strip_prefix("jitscribe: warning: ") {
                    Some(warning) => note::warning(warning),
                    None => note::say(message),
                }
            }
        }
        let recording = window.recording();
        let mut words = words.iter().map(|word| with_recording(word, &recording));
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        // Ctrl-C ends the recording, which the command then gets.
        command.args(words).process_group(0);
        descriptors::restore_in(&mut command);
        let status = command.status().map_err(Error::file(Path::new(&program)))?;
        if !status.success() {
            failed += 1;
            let program = shell_word(&program);
            note::warning(format_args!("{program} failed for window {all}: {status}"));
        }
    }
    match all {
        1 => note::say("1 window was recorded"),
        _ => note::say(format_args!("{all} windows were recorded")),
    }
    match failed {
        0 => Ok(()),
        _ => Err(Error::Refused(format!("the command failed for {failed} of {all} windows"))),
    }
}

/// A word of the command, with the path of the recording.
fn with_recording(word: &OsStr, recording: &Path) -> OsString {
    let mut rest = word.as_bytes();
    let mut filled = Vec::new();
    while let Some(place) = rest.windows(RECORDING.len()).position(|part| part == RECORDING) {
        let (before, behind) = rest.split_at(place);
        filled.extend_from_slice(before);
        filled.extend_from_slice(recording.as_os_str().as_bytes());
        rest = behind.get(RECORDING.len()..).unwrap_or_default();
    }
    filled.extend_from_slice(rest);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_the_recording() {
        for (word, filled) in [
            ("{}", "/tmp/a b/perf.data"),
            ("--input={}", "--input=/tmp/a b/perf.data"),
            ("{}{}", "/tmp/a b/perf.data/tmp/a b/perf.data"),
            ("{", "{"),
            ("", ""),
        ] {
            assert_eq!(with_recording(word.as_ref(), Path::new("/tmp/a b/perf.data")), filled);
        }
    }
}
