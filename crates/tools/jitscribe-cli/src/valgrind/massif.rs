//! `jitscribe massif`: names for jitted code in the output of massif.

use super::{FileArgs, Report};
use crate::Result;

/// Name jitted code in the output of valgrind's massif
///
/// Where the tree of a snapshot has only the address of a caller (0x4A40044: ???), inserts the name and
/// the line from a perf map or a jitdump of the process. Inlined calls become callers of their own.
/// Nothing else changes. A massif file does not contain the process id, so it is taken from the file
/// name (massif.out.PID); perf maps and jitdumps are searched by it.
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

/// Names jitted code in a file.
pub fn name(args: &FileArgs) -> Result<Report> {
    let input = super::open(args)?;
    super::rewrite(args, "massif", |out, namer| valgrind_log::massif::rewrite(input, out, namer))
}
