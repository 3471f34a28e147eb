//! `jitscribe top`: the functions that run now.
//!
//! - [`window`] records processes for a short time, again and again, and makes a profile of each recording.
//! - [`table`] counts their samples by function.
//! - [`view`] is what the user has chosen to see of it, as lines of text; [`screen`] shows them on the terminal, and [`json`] prints
//!   the counts for programs.

mod json;
mod screen;
mod table;
mod view;
mod window;

use crate::text;
use crate::{Error, Result};

use table::{Order, Table};
use window::Windows;

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
    /// These processes, and the children that they start
    #[arg(
        short,
        long,
        value_name = "PID[,PID...]",
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    pid: Option<String>,
    /// All processes
    #[arg(short, long)]
    all: bool,
    /// The length of a window in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = crate::record::seconds)]
    interval: String,
    /// Samples each second on each processor
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 199)]
    freq: u32,
    /// How to record call chains: fp, dwarf or dwarf,BYTES, lbr, none [default: as record]
    #[arg(long, value_name = "HOW")]
    call_graph: Option<String>,
    /// Do not ask processes to announce more than they do by themselves
    #[arg(long)]
    no_env: bool,
    /// Sort by this
    #[arg(long, value_enum, default_value_t)]
    sort: Order,
    /// Stop after this many windows
    #[arg(short = 'n', long, value_name = "WINDOWS")]
    count: Option<u64>,
    /// Print a line of JSON for each window: docs/look.md describes its fields
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.freq == 0 || args.count == Some(0) {
        return Err(Error::Usage("-F and -n must be at least 1".into()));
    }
    let windows = Windows::begin(args)?;
    if args.json {
        json::print(windows, args.count)
    } else if text::is_terminal() {
        screen::show(windows, args)
    } else {
        print(windows, args)
    }
}

/// Prints each window as text.
fn print(mut windows: Windows, args: &Args) -> Result<()> {
    let mut table = Table::default();
    let view = view::View::new(args.sort);
    let mut shown = 0;
    while args.count.is_none_or(|count| shown < count)
        && let Some(window) = windows.next()?
    {
        table.add(&window);
        shown += 1;
        let mut out = text::Out::new();
        for line in view.lines(&table, usize::MAX, LINES) {
            out.line(line)?;
        }
        out.line("")?;
        out.finish()?;
    }
    Ok(())
}

/// Number of lines of a window that is printed.
const LINES: usize = 32;
