//! `jitscribe report`: shows where a recording's time went.

mod stdio;

use crate::Result;

pub use stdio::Args;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    stdio::run(args)
}
