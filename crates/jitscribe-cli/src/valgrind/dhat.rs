//! `jitscribe dhat`: names in what DHAT wrote.

use super::{FileArgs, Report};
use crate::{Error, Result};

/// Name jitted code in what valgrind's DHAT wrote
///
/// Where the table of frames says no more than an address (0x4A40044: ???), the name and the line are
/// put in that a perf map or a jitdump of the process knows; calls that were inlined become frames of
/// their own. Nothing else changes. Files are looked for by the process id in the file.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  valgrind --tool=dhat node --perf-prof app.js
  jitscribe dhat dhat.out.4711
  # then load dhat.out.4711.jitted into dh_view.html, which comes with valgrind")]
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
    if args.is_stdin() {
        return Err(Error::Usage("a file of DHAT's is read twice; it cannot be piped in".into()));
    }
    let (first, second) = (super::open_file(args)?, super::open_file(args)?);
    super::rewrite(args, "dhat", |out, namer| {
        let found = valgrind_log::dhat::survey(first, namer)?;
        valgrind_log::dhat::rewrite(second, out, &found)
    })
}
