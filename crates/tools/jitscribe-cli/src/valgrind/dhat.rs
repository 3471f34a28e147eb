//! `jitscribe dhat`: names for jitted code in the output of DHAT.

use super::{FileArgs, Report};
use crate::{Error, Result};

/// Name jitted code in the output of valgrind's DHAT
///
/// Where the frame table has only an address (0x4A40044: ???), inserts the name and the line from a perf
/// map or a jitdump of the process. Inlined calls become frames of their own. Nothing else changes. Perf
/// maps and jitdumps are searched by the process id in the file.
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

/// Names jitted code in a file.
pub fn name(args: &FileArgs) -> Result<Report> {
    if args.is_stdin() {
        return Err(Error::Usage(
            "a DHAT file is read twice and cannot be piped in; pass FILE".into(),
        ));
    }
    let (first, second) = (super::open_file(args)?, super::open_file(args)?);
    super::rewrite(args, "dhat", |out, namer| {
        let found = valgrind_log::dhat::survey(first, namer)?;
        valgrind_log::dhat::rewrite(second, out, &found)
    })
}
