//! `jitscribe report`: shows a recording.

mod html;
mod open;

use crate::Result;

pub use html::Args;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    html::run(args)
}
