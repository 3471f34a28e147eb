//! To come.
use crate::Result;
/// To come.
#[derive(Debug, clap::Args)]
pub struct Args {}
/// To come.
pub fn run(_args: &Args) -> Result<()> {
    Ok(())
}
