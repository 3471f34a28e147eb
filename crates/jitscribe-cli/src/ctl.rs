//! `jitscribe ctl`: turns the announcements of a running process on and off.

use std::io::Write;
use std::time::{Duration, Instant};

use jitdump::extension::control;

use crate::process::{Log, logs_of};
use crate::{Error, Result, note};

/// Turn the code log of a running process on or off, or see how it is
///
/// For processes whose runtime links the jitscribe library. They do what is asked with their next
/// announcement, or at once if the runtime waits for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe ctl -p 4711 status
  jitscribe ctl -p 4711 on                # from now on; the runtime tells again what is alive
  jitscribe ctl -p 4711 on --perf-map     # keep /tmp/perf-4711.map too, for perf and bpftrace
  jitscribe ctl -p 4711 on --gdb          # show all code to gdb and lldb, also what is alive already
  jitscribe ctl -p 4711 on --bytes        # keep the machine code of all code from now on
  jitscribe ctl -p 4711 off")]
pub struct Args {
    /// The process
    #[arg(short, long, value_name = "PID")]
    pid: u32,
    /// Keep a perf map as well
    #[arg(long)]
    perf_map: bool,
    /// Show the code to debuggers as well
    #[arg(long)]
    gdb: bool,
    /// Keep the code's bytes as well, to show the assembly of code that is gone
    #[arg(long)]
    bytes: bool,
    /// How long to wait for the process to have done it
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
    /// Write the log
    On,
    /// Write nothing
    Off,
    /// Say how things are
    Status,
}

/// Does what the arguments say.
pub fn run(args: &Args) -> Result<()> {
    if args.what != What::On && (args.perf_map || args.bytes || args.gdb) {
        return Err(Error::Usage(
            "--perf-map, --gdb and --bytes say what is to be on: add `on`".to_owned(),
        ));
    }
    let logs = own_logs(args.pid)?;
    let wish = match args.what {
        What::Status => return status(args, &logs),
        What::Off => control::WISH,
        What::On => {
            let bytes = if args.bytes { control::BYTES } else { 0 };
            let perf_map = if args.perf_map { control::PERF_MAP } else { 0 };
            let gdb = if args.gdb { control::GDB } else { 0 };
            control::WISH | control::LOG | bytes | perf_map | gdb
        }
    };
    for log in &logs {
        log.set_control(wish)?;
    }
    let patience = Duration::try_from_secs_f64(args.wait)
        .map_err(|_| Error::Usage("--wait takes a number of seconds".to_owned()))?;
    let until = Instant::now() + patience;
    let mut waiting: Vec<&Log> = logs.iter().collect();
    loop {
        waiting.retain(|log| log.head().is_ok_and(|head| head.control & control::WISH != 0));
        if waiting.is_empty() || Instant::now() >= until {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if !waiting.is_empty() {
        note::say(format_args!(
            "process {} was asked, and has announced no code since: it will do so with its next announcement",
            args.pid
        ));
    }
    status(args, &logs)
}

/// The logs that the process itself writes.
fn own_logs(pid: u32) -> Result<Vec<Log>> {
    let mut logs = logs_of(pid)?;
    let found = logs.len();
    logs.retain(Log::is_own);
    if logs.is_empty() && found > 0 {
        return Err(Error::Refused(format!(
            "process {pid} has its parent's code log, and begins one of its own with its first announcement"
        )));
    }
    if logs.is_empty() {
        return Err(Error::Refused(format!(
            "process {pid} keeps no code log: its runtime does not link jitscribe, or could not make one"
        )));
    }
    Ok(logs)
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
    alive: u64,
    dead: u64,
    used: u64,
    limit: u64,
    left_out: u64,
    arch_timestamp: bool,
    paused: u64,
    resumed: u64,
}

fn status(args: &Args, logs: &[Log]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for log in logs {
        let snapshot = code_log::snapshot(log).map_err(Error::format(&log.place))?;
        let (mut alive, mut dead) = (0, 0);
        let dump = jitdump::Dump::parse(&snapshot.bytes).map_err(Error::format(&log.place))?;
        for event in dump.codes().flatten() {
            if let jitdump::CodeEvent::Load(code) = event {
                match code.died() {
                    None => alive += 1,
                    Some(_) => dead += 1,
                }
            }
        }
        let head = snapshot.head;
        let status = Status {
            pid: args.pid,
            log: log.place.display().to_string(),
            on: head.control & control::LOG != 0,
            bytes: head.control & control::BYTES != 0,
            perf_map: head.control & control::PERF_MAP != 0,
            gdb: head.control & control::GDB != 0,
            asked: head.control & control::WISH != 0,
            alive,
            dead,
            used: u64::from(head.chunks) * u64::from(head.chunk_size),
            limit: head.limit,
            left_out: head.left_out,
            arch_timestamp: head.arch_timestamp,
            paused: head.paused,
            resumed: head.resumed,
        };
        if args.json {
            serde_json::to_writer(&mut out, &status)
                .map_err(|error| Error::Stdout(error.into()))?;
            writeln!(out).map_err(Error::Stdout)?;
        } else {
            status.print(&mut out).map_err(Error::Stdout)?;
        }
    }
    Ok(())
}

impl Status {
    fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let state = match (self.on, self.asked) {
            (true, false) => "on",
            (false, false) => "off",
            (true, true) => "asked to be on",
            (false, true) => "asked to be off",
        };
        let with = match (self.bytes, self.perf_map) {
            (true, true) => ", with the code's bytes and a perf map",
            (true, false) => ", with the code's bytes",
            (false, true) => ", with a perf map",
            (false, false) => "",
        };
        let gdb = if self.gdb { ", shown to debuggers" } else { "" };
        writeln!(out, "process {}: {state}{with}{gdb}", self.pid)?;
        writeln!(
            out,
            "  {} codes alive, {} dead; {} KiB of {} KiB used ({})",
            self.alive,
            self.dead,
            self.used >> 10,
            self.limit >> 10,
            self.log
        )?;
        if self.left_out > 0 {
            writeln!(
                out,
                "  {} codes were left out for want of room: JITSCRIBE_LIMIT",
                self.left_out
            )?;
        }
        Ok(())
    }
}
