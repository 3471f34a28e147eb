//! `jitscribe massif`: names in what massif wrote.

use super::{FileArgs, Report};
use crate::Result;

/// Name jitted code in what valgrind's massif wrote
///
/// Where the tree of a snapshot says no more of a caller than its address (0x4A40044: ???), the name
/// and the line are put in that a perf map or a jitdump of the process knows; calls that were inlined
/// become callers of their own. Nothing else changes. The file does not say which process it is of:
/// that is taken from its name (massif.out.PID), and files are looked for by it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  valgrind --tool=massif node --perf-prof app.js
  jitscribe massif massif.out.4711
  ms_print massif.out.4711.jitted")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    super::done(&args.file, &name(&args.file)?)
}

/// Names what can be named.
pub fn name(args: &FileArgs) -> Result<Report> {
    let input = super::open(args)?;
    super::rewrite(args, "massif", |out, namer| valgrind_log::massif::rewrite(input, out, namer))
}
