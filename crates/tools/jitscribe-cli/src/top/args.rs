//! The arguments of `jitscribe top`.

use crate::sort::Sort;
use crate::windows::WindowArgs;

/// Show the functions that run now, jitted and native
///
/// Samples running processes in windows of a few seconds with perf, and shows the functions of the last window, or of all since
/// the beginning: samples in the function itself and in what it called, the compiler's tiers, and what was compiled just now.
/// JVMs are asked to load the agent, and processes with a code log that is off to turn it on, until top ends.
///
/// Keys: q quit, s t n sort by self, total or name, / search, c all windows or the last, p pause, arrows scroll, ? help.
/// With --json, or if standard output is not a terminal, each window is printed as a line.
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "jitscribe top [OPTIONS] -p PID[,PID...]\n       jitscribe top [OPTIONS] -a",
    after_help = "EXAMPLES:
  jitscribe top -p 4711
  jitscribe top -a --interval 5
  jitscribe top -p 4711 --json -n 3 | jq -r '.functions[0].name'"
)]
pub struct Args {
    #[command(flatten)]
    pub windows: WindowArgs,
    /// The length of a window in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = crate::record::seconds)]
    pub interval: String,
    /// Samples each second on each processor
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 199)]
    pub freq: u32,
    /// Sort by this
    #[arg(long, value_enum, default_value_t)]
    pub sort: Sort,
    /// Stop after this many windows
    #[arg(short = 'n', long, value_name = "WINDOWS")]
    pub count: Option<u64>,
    /// Print a line of JSON for each window: docs/look.md describes its fields
    #[arg(long)]
    pub json: bool,
}
