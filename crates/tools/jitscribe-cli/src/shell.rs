//! Shell completions and man pages, generated from the definition of the command line.

use std::io::Write;

use clap::Command;
use clap_complete::Shell;

use crate::text::{self, Out};
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

/// Print man pages
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe man | man -l -
  jitscribe man inject | man -l -
  jitscribe man --list          # the names of all pages")]
pub struct ManArgs {
    /// Print the page of this verb, or with `jitscribe` the page of the command itself; without it, all pages
    #[arg(value_name = "VERB")]
    page: Option<String>,

    /// Print the name of each page instead: `jitscribe`, `jitscribe-record` and so on
    #[arg(long, conflicts_with = "page")]
    list: bool,
}

/// Prints completions for `command`.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "jitscribe", &mut script);
    let mut out = Out::new();
    out.write_all(&script).map_err(Error::Stdout)?;
    out.finish()
}

/// Prints man pages of `command`.
pub fn man(args: &ManArgs, mut command: Command) -> Result<()> {
    command.build();
    let verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help");
    let mut pages: Vec<&Command> = std::iter::once(&command).chain(verbs).collect();
    if let Some(wanted) = &args.page {
        pages.retain(|page| page.get_name() == wanted);
        if pages.is_empty() {
            return Err(Error::Usage(format!(
                "no page for `{}`. `jitscribe --help` lists the verbs",
                text::said(wanted)
            )));
        }
    }
    let mut out = Out::new();
    for page in pages {
        if args.list {
            let name = page.get_display_name().unwrap_or_else(|| page.get_name());
            writeln!(out, "{name}").map_err(Error::Stdout)?;
        } else {
            clap_mangen::Man::new(page.clone()).render(&mut out).map_err(Error::Stdout)?;
        }
    }
    out.finish()
}
