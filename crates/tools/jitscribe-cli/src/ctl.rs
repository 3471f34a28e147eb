//! `jitscribe ctl`: turns the code log of a running process on and off.

use std::time::{Duration, Instant};

use jitdump::extension::control;

use crate::foreign::Patience;
use crate::process::{ListedLogs, Log, logs_for_requests, logs_of};
use crate::text::{self, Out};
use crate::{Error, Result, note};

/// Turn the code log of a running process on or off, or show its state
///
/// This works for processes whose runtime links the jitscribe library. A process applies the request with its next
/// announcement, or immediately if its runtime waits for requests.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe ctl -p 4711 status
  jitscribe ctl -p 4711 on                # from now on; the runtime announces its live code again
  jitscribe ctl -p 4711 on --perf-map     # also write /tmp/perf-4711.map, for perf and bpftrace
  jitscribe ctl -p 4711 on --gdb          # register all code with gdb and lldb, including live code
  jitscribe ctl -p 4711 on --bytes        # from now on, also keep the machine code
  jitscribe ctl -p 4711 off")]
pub struct Args {
    /// The process
    #[arg(short, long, value_name = "PID")]
    pid: u32,
    /// Also write a perf map
    #[arg(long)]
    perf_map: bool,
    /// Also register the code with debuggers
    #[arg(long)]
    gdb: bool,
    /// Also keep the code's bytes, so that freed code can still be disassembled
    #[arg(long)]
    bytes: bool,
    /// How long to wait for the process to apply the request
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    wait: f64,
    /// Print the state as JSON (sizes in bytes, times in nanoseconds of CLOCK_MONOTONIC, or in ticks where
    /// `arch_timestamp` is true)
    #[arg(long)]
    json: bool,
    /// What to do
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Turn the log on
    On,
    /// Turn the log off
    Off,
    /// Show the state of the log
    Status,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.what != What::On && (args.perf_map || args.bytes || args.gdb) {
        return Err(Error::Usage(
            "--perf-map, --gdb and --bytes only work with `on`: add `on`".to_owned(),
        ));
    }
    let deadline = Deadline { pid: args.pid, begun: Instant::now(), wait: Duration::ZERO };
    let logs = own_logs(args)?;
    let request = match args.what {
        What::Status => return status(args, &logs, &deadline),
        What::Off => control::REQUEST,
        What::On => {
            let bytes = if args.bytes { control::BYTES } else { 0 };
            let perf_map = if args.perf_map { control::PERF_MAP } else { 0 };
            let gdb = if args.gdb { control::GDB } else { 0 };
            control::REQUEST | control::LOG | bytes | perf_map | gdb
        }
    };
    let patience = Duration::try_from_secs_f64(args.wait)
        .map_err(|_| Error::Usage("--wait takes a number of seconds".to_owned()))?;
    let deadline = Deadline { wait: patience, ..deadline };
    for log in &logs {
        deadline.check()?;
        log.request(request)?;
    }
    let mut is_waiting = false;
    let asked = Instant::now();
    for log in &logs {
        deadline.check()?;
        let head = log.wait(patience.saturating_sub(asked.elapsed()))?;
        is_waiting |= head.control & control::REQUEST != 0;
    }
    if is_waiting {
        say_waiting(args);
    }
    status(args, &logs, &deadline)
}

/// The common deadline for all logs of the process.
struct Deadline {
    pid: u32,
    begun: Instant,
    /// The time granted to the process itself, as given by `--wait`.
    wait: Duration,
}

impl Deadline {
    fn check(&self) -> Result<()> {
        self.check_at(Instant::now())
    }

    fn check_at(&self, now: Instant) -> Result<()> {
        // Each log has a deadline of its own, which counts only time in which the process can answer. So this one is for wall time.
        let passed = now.saturating_duration_since(self.begun);
        let is_over = passed > Patience::NAMED.whole.and(self.wait).wall;
        if is_over { Err(Error::NotAnswering(self.pid)) } else { Ok(()) }
    }
}

/// Reports that the process has not applied the request yet: when it will, and what works without it.
fn say_waiting(args: &Args) {
    let pid = args.pid;
    note::say(format_args!(
        "process {pid} has not applied the request yet: it does so with its next announcement"
    ));
    if args.perf_map {
        note::say(format_args!(
            "for a perf map of the code announced so far: jitscribe dump -p {pid} --map-for-perf"
        ));
    }
}

/// The logs that the process writes itself. A process that has announced nothing since the fork still has its parent's log, of
/// which it owns what was there at the fork. That log must not receive requests, because the parent would apply them.
fn own_logs(args: &Args) -> Result<Vec<Log>> {
    let pid = args.pid;
    let mut logs = if args.what == What::Status { logs_of(pid)? } else { logs_for_requests(pid)? };
    let has_own = logs.iter().any(Log::is_own);
    // Part of the state is what the process has not copied from its parent's log yet.
    if has_own && args.what != What::Status {
        logs.retain(Log::is_own);
    }
    if logs.is_empty() {
        return Err(Error::Refused(format!(
            "process {pid} keeps no code log: its runtime does not link jitscribe, or could not create the log"
        )));
    }
    if has_own || args.what == What::Status {
        return Ok(logs);
    }
    let parent = logs.first().map_or(0, |log| log.head.pid);
    Err(Error::Refused(format!(
        "process {pid} has announced no code since the fork and has no code log of its own yet. It follows the settings of \
         its parent: jitscribe ctl -p {parent}"
    )))
}

#[derive(serde::Serialize)]
struct Status {
    pid: u32,
    log: String,
    on: bool,
    bytes: bool,
    perf_map: bool,
    gdb: bool,
    asked: bool,
    /// Whether this is the parent's log as of the fork.
    inherited: bool,
    #[serde(skip)]
    has_own: bool,
    alive: u64,
    dead: u64,
    used: u64,
    limit: u64,
    left_out: u64,
    arch_timestamp: bool,
    paused: u64,
    resumed: u64,
    /// Whether OpenTelemetry's process context lists the log; `null` if there is none, or if it cannot be read.
    process_context: Option<bool>,
    #[serde(skip)]
    context_error: Option<String>,
}

fn status(args: &Args, logs: &[Log], deadline: &Deadline) -> Result<()> {
    let mut out = Out::by_lines();
    for log in logs {
        deadline.check()?;
        let counts = log.count_codes()?;
        let head = counts.head;
        let status = Status {
            pid: args.pid,
            log: text::path(&log.place).to_string(),
            on: head.control & control::LOG != 0,
            bytes: head.control & control::BYTES != 0,
            perf_map: head.control & control::PERF_MAP != 0,
            gdb: head.control & control::GDB != 0,
            asked: head.control & control::REQUEST != 0,
            inherited: !log.is_own(),
            has_own: logs.iter().any(Log::is_own),
            alive: counts.alive,
            dead: counts.codes.saturating_sub(counts.alive),
            used: u64::from(head.chunks) * u64::from(head.chunk_size),
            limit: head.limit,
            left_out: head.left_out,
            arch_timestamp: head.arch_timestamp,
            paused: head.paused,
            resumed: head.resumed,
            process_context: match log.listed() {
                ListedLogs::Addresses(logs) => Some(logs.contains(&log.address())),
                _ => None,
            },
            context_error: match log.listed() {
                ListedLogs::Unreadable(error) => Some(error.clone()),
                _ => None,
            },
        };
        if args.json {
            out.json(&status)?;
        } else {
            status.print(&mut out)?;
        }
    }
    Ok(())
}

impl Status {
    fn print(&self, out: &mut Out) -> Result<()> {
        let state = match (self.on, self.asked) {
            (true, false) => "on",
            (false, false) => "off",
            (true, true) => "on (requested)",
            (false, true) => "off (requested)",
        };
        let with = match (self.bytes, self.perf_map) {
            (true, true) => ", with the code's bytes and a perf map",
            (true, false) => ", with the code's bytes",
            (false, true) => ", with a perf map",
            (false, false) => "",
        };
        let inherited = match (self.inherited, self.has_own) {
            (false, _) => "",
            (true, true) => " (the parent's code log as of the fork)",
            (true, false) => {
                " (the parent's code log as of the fork: the process has announced nothing since)"
            }
        };
        let gdb = if self.gdb { ", shown to debuggers" } else { "" };
        out.line(format_args!("process {}: {state}{with}{gdb}{inherited}", self.pid))?;
        out.line(format_args!(
            "  {} codes alive, {} dead; {} KiB of {} KiB used ({})",
            self.alive,
            self.dead,
            self.used >> 10,
            self.limit >> 10,
            self.log
        ))?;
        match (self.process_context, &self.context_error) {
            (Some(true), _) => out.line("  listed in the OpenTelemetry process context")?,
            (Some(false), _) => {
                out.line("  not listed in the OpenTelemetry process context that the process has")?;
            }
            (None, Some(error)) => out.line(format_args!(
                "  the OpenTelemetry process context cannot be read: {error}"
            ))?,
            (None, None) => {}
        }
        if self.left_out > 0 {
            out.line(format_args!(
                "  {} codes are missing because the log was full; JITSCRIBE_LIMIT sets the limit",
                self.left_out
            ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_logs_have_one_deadline() {
        let begun = Instant::now();
        let deadline = Deadline { pid: 1, begun, wait: Duration::ZERO };
        let later = begun + Duration::from_secs(605);
        assert!(deadline.check_at(begun + Duration::from_secs(595)).is_ok());
        assert!(matches!(deadline.check_at(later), Err(Error::NotAnswering(1))));
        assert!(Deadline { wait: Duration::from_secs(10), ..deadline }.check_at(later).is_ok());
    }
}
