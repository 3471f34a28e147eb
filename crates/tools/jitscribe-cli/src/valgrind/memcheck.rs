//! `jitscribe memcheck`: names for jitted code in the messages of memcheck, helgrind and DRD.

use std::io::{BufRead, Read};

use super::{FileArgs, Report};
use crate::{Error, Result};

/// Name jitted code in the output of valgrind's memcheck, helgrind or DRD
///
/// Where a message has only the address of a frame (at 0x4A40044: ???), inserts the name and the line
/// from a perf map or a jitdump of the process. Inlined calls become frames of their own. Nothing else
/// changes. The input is text or XML (--xml=yes), also of several processes in one stream. Perf maps and
/// jitdumps are searched by the process ids in the log.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  valgrind --log-file=memcheck.%p.log node --perf-prof app.js
  jitscribe memcheck memcheck.4711.log -o named.log

  # while it runs
  valgrind node --perf-basic-prof app.js 2>&1 | jitscribe memcheck -")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    super::done(&args.file, &name(&args.file)?)
}

/// Names jitted code in a log.
pub fn name(args: &FileArgs) -> Result<Report> {
    let mut input = super::open(args)?;
    // Long enough for blanks before the XML.
    let mut begin = Vec::new();
    input.by_ref().take(64).read_until(b'>', &mut begin).map_err(Error::file(&args.input))?;
    let text = begin.trim_ascii_start();
    let is_xml = text.starts_with(b"<?xml") || text.starts_with(b"<valgrindoutput");
    let input = begin.as_slice().chain(input);
    super::rewrite(args, "memcheck", |out, namer| {
        if is_xml {
            valgrind_log::xml::rewrite(input, out, namer)
        } else {
            valgrind_log::text::rewrite(input, out, namer)
        }
    })
}
