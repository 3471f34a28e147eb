//! `demo-jit`: the demo JIT as a program of its own, to be run under perf, GDB or Valgrind.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use demo_jit::{MemoryKind, Options, Pace, Report, run};

/// Compiles a small program while running it, and announces its code.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Milliseconds that each phase goes on
    #[arg(long, default_value_t = 350, value_name = "MS")]
    phase: u64,
    /// Call each function of a phase so often, instead of for a time
    #[arg(long, value_name = "N", conflicts_with = "phase")]
    calls: Option<u32>,
    /// Let generated code spoil rbp instead of keeping a frame pointer
    #[arg(long)]
    no_frame_pointers: bool,
    /// What the code lies in
    #[arg(long, default_value = "anonymous", value_parser = ["anonymous", "named", "memfd"])]
    memory: String,
    /// Write jit-PID.dump into this directory
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,
    /// Write perf-PID.map into this directory (perf looks in /tmp)
    #[arg(long, value_name = "DIR")]
    perf_map_dir: Option<PathBuf>,
    /// Keep the code log in memory, or where JITSCRIBE=... says, for `jitscribe record -p` [default: if JITSCRIBE
    /// is set, as `jitscribe record` does, and nothing else is asked for]
    #[arg(long)]
    log: bool,
    /// Write listings of the intermediate representation into this directory
    #[arg(long, value_name = "DIR")]
    ir_dir: Option<PathBuf>,
    /// Write the program's source into this directory
    #[arg(long, value_name = "DIR")]
    source_dir: Option<PathBuf>,
    /// Compile N generated functions instead of the demo program
    #[arg(long, value_name = "N")]
    many: Option<u32>,
    /// Run the code from this shared object, which holds it under the names that --truth tells, instead of
    /// from memory
    #[arg(long, value_name = "FILE", conflicts_with_all = ["log", "dump_dir", "perf_map_dir", "truth"])]
    code_from: Option<PathBuf>,
    /// Write every code's place, time, lines and bytes to this file, a JSON object a line
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Before the first phase, wait until this file exists
    #[arg(long, value_name = "FILE")]
    start_when: Option<PathBuf>,
    /// After the last phase, wait until this file exists
    #[arg(long, value_name = "FILE")]
    end_when: Option<PathBuf>,
    /// Do not print what was called
    #[arg(short, long)]
    quiet: bool,
}

impl Arguments {
    /// Whether to keep the code log. A program that links the library does so in any case; this one is also used to show what tools
    /// see without.
    fn wants_log(&self) -> bool {
        let is_set = std::env::var_os("JITSCRIBE").is_some_and(|words| !words.is_empty());
        let has_other =
            self.dump_dir.is_some() || self.perf_map_dir.is_some() || self.code_from.is_some();
        self.log || is_set && !has_other
    }
}

impl From<Arguments> for Options {
    fn from(arguments: Arguments) -> Self {
        let log = arguments.wants_log();
        Self {
            pace: match arguments.calls {
                Some(calls) => Pace::Calls(calls),
                None => Pace::Time(Duration::from_millis(arguments.phase)),
            },
            frame_pointers: !arguments.no_frame_pointers,
            memory: match arguments.memory.as_str() {
                "memfd" => MemoryKind::Memfd,
                "named" => MemoryKind::Named,
                _ => MemoryKind::Anonymous,
            },
            dump_dir: arguments.dump_dir,
            perf_map_dir: arguments.perf_map_dir,
            log,
            ir_dir: arguments.ir_dir,
            source_dir: arguments.source_dir,
            many: arguments.many,
            library: arguments.code_from,
            truth: arguments.truth,
            start_when: arguments.start_when,
            end_when: arguments.end_when,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let quiet = arguments.quiet;
    let done = run(&arguments.into()).map_err(|error| error.to_string()).and_then(|report| {
        if quiet {
            return Ok(());
        }
        show(&report).map_err(|error| error.to_string())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(io::stderr(), "demo-jit: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show(report: &Report) -> io::Result<()> {
    /// More would not be read.
    const CALLS_SHOWN: usize = 8;
    let mut out = io::stdout().lock();
    for phase in &report.phases {
        writeln!(out, "{}", phase.name)?;
        for called in phase.calls.iter().take(CALLS_SHOWN) {
            let (function, argument) = (&called.function, called.argument);
            writeln!(out, "  {function}({argument}) = {}, {} times", called.value, called.count)?;
        }
        if let Some(more) = phase.calls.len().checked_sub(CALLS_SHOWN).filter(|more| *more > 0) {
            writeln!(out, "  and {more} more")?;
        }
    }
    writeln!(out, "{} codes loaded, {} moved", report.loads, report.moves)?;
    for file in [&report.dump, &report.perf_map, &report.source].into_iter().flatten() {
        writeln!(out, "wrote {}", file.display())?;
    }
    Ok(())
}
