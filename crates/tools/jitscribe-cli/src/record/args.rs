//! The arguments of `jitscribe record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::tool::Tool;
use crate::files::Named;
use crate::source_lines::SourceLineArgs;
use crate::{exit_code, runtimes};

/// Record a command or a process, including its jitted code
///
/// Runs perf record with the clock and call chains that jitted code needs, configures known runtimes
/// to announce their code, and adds that code to the recording. Options that are not listed here are
/// passed on to perf record: -F 999, -e cycles, -a, -C 0.
///
/// The exit code is the command's own; 128 + N if signal N ended it; 3 if samples are in jitted code, and none has a name. Ctrl-C ends the recording, and
/// the recording is then processed as usual.
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "jitscribe record [OPTIONS] [PERF OPTIONS] -- COMMAND...\n       \
                      jitscribe record [OPTIONS] [PERF OPTIONS] -p PID [-- COMMAND...]\n       \
                      jitscribe record --tool=TOOL [OPTIONS] [VALGRIND OPTIONS] -- COMMAND...",
    after_help = "EXAMPLES:
  jitscribe record -- node app.js
  perf report

  jitscribe record -o out.data -F 999 --call-graph dwarf -- java -jar app.jar

  # a running process, for ten seconds
  jitscribe record -p 4711 --duration 10

  # a running node that was started without flags
  jitscribe record -p 4711 --inspect --duration 10

  # a command, for five seconds
  jitscribe record --duration 5 -- java -jar server.jar

  # the whole system while a script runs
  jitscribe record -a -- ./load-test.sh

  # under valgrind
  jitscribe record --tool=memcheck --leak-check=full -- node app.js",
    after_long_help = after_long_help()
)]
pub struct Args {
    /// Run the command under this tool of valgrind instead of perf; options that are not listed here are
    /// then passed on to valgrind. Each process writes a file FILE.PID [default: TOOL.out.PID]
    #[arg(long, value_name = "TOOL", value_enum)]
    pub tool: Option<Tool>,
    /// Where to write the recording; an earlier recording there is renamed to FILE.old. Object files with the code go into
    /// the folder FILE.jit beside it
    #[arg(short, long, value_name = "FILE", default_value = OUTPUT)]
    pub output: PathBuf,
    /// Record these running processes until Ctrl-C, until they end, or while COMMAND runs
    #[arg(short, long, value_name = "PID[,PID...]")]
    pub pid: Option<String>,
    /// Ask the processes that -p names to announce their code. Node: open its inspector by SIGUSR1, have it load a library, and close the
    /// inspector again; the library stays loaded, and is off when the recording ends. Python 3.14 and later: turn its trampolines on, by
    /// the protocol for debuggers, and off when the recording ends
    #[arg(long)]
    pub inspect: bool,
    /// Stop after this many seconds. A command that still runs is then ended with SIGTERM, and the exit code is 0
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<String>,
    /// How to record call chains: fp, dwarf or dwarf,BYTES, lbr, none [default: fp; dwarf for a running JVM without
    /// -XX:+PreserveFramePointer, and for Python from 3.13 without frame pointers]. dwarf copies 32768 bytes of each stack
    #[arg(long, value_name = "HOW", value_parser = call_graph)]
    pub call_graph: Option<String>,
    /// Leave the command and its environment unchanged: only code that its runtimes announce by themselves
    /// has names
    #[arg(long)]
    pub no_env: bool,
    /// Load a library into the command that announces the code as its runtimes write it down: under valgrind, jitted
    /// code has names while it runs; for perf, code from perf maps has bytes
    #[arg(long)]
    pub bridge: bool,
    /// Do not read executable memory of the recorded processes, which gives code without bytes its assembly, and a name to code
    /// that nothing announces
    #[arg(long)]
    pub no_memory: bool,
    /// Learn by a hardware breakpoint when a process registers code with GDB's JIT interface, and read that code at once: for code that
    /// lasts only milliseconds, as that of PostgreSQL's queries. Takes at most a fifth of a processor
    #[arg(long)]
    pub exact_times: bool,
    /// A jitdump to apply, and its process [default: from its marker, header or name]. It may be written during the recording
    #[arg(long, value_name = "[PID=]FILE")]
    pub jitdump: Vec<Named>,
    /// A perf map to apply, and its process [default: from its name, or the only one with a JIT compiler's memory]. It may be
    /// written during the recording
    #[arg(long, value_name = "[PID=]FILE")]
    pub perf_map: Vec<Named>,
    /// Keep the recording as perf wrote it, and the dumps, in the folder FILE.raw
    #[arg(long)]
    pub keep_raw: bool,
    /// Where to write the object files; perf looks for them there [default: FILE.jit]
    #[arg(long, value_name = "DIR")]
    pub image_dir: Option<PathBuf>,
    #[command(flatten)]
    pub sources: SourceLineArgs,
    /// Replace the recording, the object files and FILE.raw if they exist, instead of keeping the earlier recording as
    /// FILE.old
    #[arg(short, long)]
    pub force: bool,
    /// Exit with 0 even if nothing was named
    #[arg(long)]
    pub allow_empty: bool,
    /// Also add the object files, and all other sampled files, to perf's build-id cache (~/.debug)
    #[arg(long)]
    pub buildid_cache: bool,
    /// Print a report as JSON on standard output: docs/scripts.md describes its fields
    #[arg(long)]
    pub json: bool,
    /// Pass one word on to perf record; options that are not listed here are passed on automatically
    #[arg(long, value_name = "WORD", require_equals = true, allow_hyphen_values = true)]
    pub perf_option: Vec<OsString>,
    /// The recorded processes announce their code already: `jitscribe top` has seen to it
    #[arg(long, hide = true)]
    pub held: bool,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn after_long_help() -> String {
    format!(
        "EXAMPLES:
  jitscribe record -- node app.js
  perf report

  jitscribe record -o out.data -F 999 --call-graph dwarf -- java -jar app.jar

  # a running process, for ten seconds
  jitscribe record -p 4711 --duration 10

  # a running node that was started without flags
  jitscribe record -p 4711 --inspect --duration 10

  # a command, for five seconds
  jitscribe record --duration 5 -- node server.js

  # the whole system while a script runs
  jitscribe record -a -- ./load-test.sh

  # under valgrind
  jitscribe record --tool=memcheck --leak-check=full -- node app.js

{}
FILES:
  FILE is the recording, and FILE.jit/ holds the code in it. Keep the two together; nothing else is
  needed. A recording that is FILE already becomes FILE.old, and replaces an earlier FILE.old; its code stays where
  it is, and the new code goes into FILE.jit.2/ or the next free number. While recording, a folder .jitscribe-XXXXXX beside FILE holds intermediate files; it is kept
  if processing fails, and removed by the next recording if this one is killed. Runtimes that let us choose the place write their dumps there. node's dump and
  log in the working directory are removed, unless your own flags ask for such files. All other dumps
  are listed at the end, with the command that removes them.

{}",
        runtimes::help(),
        exit_code::help()
    )
}

/// A length of time on the command line.
pub fn seconds(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(text.to_owned()),
        _ => Err("expected a number of seconds greater than 0".into()),
    }
}

fn call_graph(text: &str) -> Result<String, String> {
    let how = text.split(',').next().unwrap_or_default();
    if ["fp", "dwarf", "lbr", "none"].contains(&how) {
        Ok(text.to_owned())
    } else {
        Err("expected fp, dwarf, dwarf,BYTES, lbr or none".into())
    }
}

/// The default output file.
pub const OUTPUT: &str = "perf.data";

/// A path next to the output file.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
