//! How much is printed, and whether in colour: the options that all verbs have.

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use clap::{ColorChoice, Command, ValueEnum};

/// The options of all verbs.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Messages")]
pub struct Args {
    /// Print what is run and read; twice prints more of the tool that is run. record passes it on to its tool
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Print only warnings and errors. record passes it on to its tool
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Colours in messages and help. `auto`: if written to a terminal, unless NO_COLOR is set;
    /// CLICOLOR_FORCE turns them on
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: When,
}

/// When to print in colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// As the terminal and the environment ask for
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl From<When> for ColorChoice {
    fn from(when: When) -> Self {
        match when {
            When::Auto => Self::Auto,
            When::Always => Self::Always,
            When::Never => Self::Never,
        }
    }
}

static SETTINGS: OnceLock<Args> = OnceLock::new();

/// Sets the options for this run of the command. Only the first call has an effect.
pub fn configure(args: Args) {
    _ = SETTINGS.set(args);
}

/// How many times more is asked for.
pub fn verbosity() -> u8 {
    SETTINGS.get().map_or(0, |settings| settings.verbose)
}

/// Whether only warnings and errors are printed.
pub fn is_quiet() -> bool {
    SETTINGS.get().is_some_and(|settings| settings.quiet)
}

/// Whether to print in colour to a stream.
pub fn is_coloured(is_terminal: bool) -> bool {
    match SETTINGS.get().map(|settings| settings.color).unwrap_or_default() {
        When::Always => true,
        When::Never => false,
        When::Auto => auto(is_terminal, |name| std::env::var_os(name)),
    }
}

/// What the environment asks for, by the conventions of <https://no-color.org> and <https://bixense.com/clicolors>.
fn auto(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_on = |name| variable(name).is_some_and(|value| value != "0");
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    if is_set("NO_COLOR") {
        false
    } else if is_on("CLICOLOR_FORCE") {
        true
    } else if variable("CLICOLOR").is_some_and(|value| value == "0") {
        false
    } else {
        is_terminal && (!is_dumb || is_on("CLICOLOR"))
    }
}

/// Adds the options to a command that finds out which words are options of ours.
pub fn add_to(command: Command) -> Command {
    <Args as clap::Args>::augment_args(command)
}

/// The value of `--color`, before the command line is parsed: its errors are printed in colour, too.
pub fn color_of(words: &[OsString]) -> When {
    let options = words.iter().take_while(|word| *word != "--");
    let mut before: Option<&OsStr> = None;
    let mut color = When::Auto;
    for word in options {
        let inline = word.to_str().and_then(|word| word.strip_prefix("--color="));
        let value = inline.or_else(|| word.to_str().filter(|_| before == Some("--color".as_ref())));
        color = value.and_then(|value| When::from_str(value, false).ok()).unwrap_or(color);
        before = Some(word);
    }
    color
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_as_elsewhere() {
        let asked = |is_terminal, set: &[(&str, &str)]| {
            auto(is_terminal, |name| {
                set.iter().find(|(there, _)| *there == name).map(|(_, value)| value.into())
            })
        };
        let xterm = ("TERM", "xterm");
        assert!(asked(true, &[xterm]));
        assert!(!asked(false, &[xterm]));
        assert!(!asked(true, &[xterm, ("NO_COLOR", "1")]));
        assert!(asked(true, &[xterm, ("NO_COLOR", "")]));
        assert!(asked(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!asked(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!asked(false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(!asked(true, &[xterm, ("CLICOLOR", "0")]));
        assert!(!asked(true, &[("TERM", "dumb")]));
        assert!(!asked(true, &[]));
    }

    #[test]
    fn the_colour_is_found_before_parsing() {
        let of = |line: &str| color_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("jitscribe --color always record --bad"), When::Always);
        assert_eq!(of("jitscribe record --color=never"), When::Never);
        assert_eq!(of("jitscribe record -- ls --color=never"), When::Auto);
        assert_eq!(of("jitscribe record --color=purple"), When::Auto);
    }
}
