//! `jitscribe fleet`: a program of its own, as the engine in it is larger than all of this command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::{Error, Result, companion};

/// The program.
const PROGRAM: &str = "jitscribe-fleet";

/// Ask the Parquet tables of many hosts: which jitted functions cost most, and what a deployment changed
///
/// `export --parquet` and `collect` write the tables. This is the program jitscribe-fleet, which is installed apart: `cargo install --path fleet` in the project's folder.
#[derive(Clone, Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "EXAMPLES:
  jitscribe fleet top /srv/fleet --service shop --since 2026-11-25
  jitscribe fleet diff /srv/fleet --service shop --before 1.0 --after 1.1
  jitscribe fleet report /srv/fleet -o fleet.html
  jitscribe fleet --help"
)]
pub struct Args {
    /// What to ask: top, report, diff, churn or coverage, and the options of each
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

/// Becomes the program.
pub fn run(args: &Args) -> Result<()> {
    let Some(program) = companion::program(PROGRAM) else {
        return Err(Error::Refused(format!(
            "{PROGRAM} is not installed: run `cargo install --path fleet` in the project's folder, or copy the program beside this one"
        )));
    };
    Err(Error::file(&program)(Command::new(&program).args(&args.words).exec()))
}
