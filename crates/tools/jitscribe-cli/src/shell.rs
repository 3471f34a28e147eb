//! Shell completions and man pages, generated from the definition of the command line.

use std::io::Write;

use clap::Command;
use clap_complete::Shell;

use crate::text::Out;
use crate::{Error, Result};

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe completions bash > /etc/bash_completion.d/jitscribe
  jitscribe completions zsh > ~/.zfunc/_jitscribe")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print all man pages
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe man | man -l -")]
pub struct ManArgs {}

/// Prints completions for `command`.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "jitscribe", &mut script);
    let mut out = Out::new();
    out.write_all(&script).map_err(Error::Stdout)?;
    out.finish()
}

/// Prints the man pages of `command`.
pub fn man(_args: &ManArgs, mut command: Command) -> Result<()> {
    let mut out = Out::new();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut out).map_err(Error::Stdout)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        clap_mangen::Man::new(verb.clone()).render(&mut out).map_err(Error::Stdout)?;
    }
    out.finish()
}
