//! The agent's options: the text behind `=` in `-agentpath:…=OPTIONS`, or behind the path for `jcmd`.
//!
//! `names:full` is the same as `names=full`, because `jcmd` splits its arguments at `=` unless they are in quotes of
//! its own.

use std::path::PathBuf;

use jitscribe::{Builder, Scribe};

use crate::names::Format;

/// The requested action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Command {
    /// Announce until stopped.
    #[default]
    Start,
    /// Stop, regardless of who started it.
    Stop,
    /// Announce while a recorder has a pipe open: [`Options::session`].
    Session,
}

/// The options.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) command: Command,
    /// The recorder's pipe.
    pub(crate) session: Option<PathBuf>,
    pub(crate) format: Option<Format>,
    /// Directories of source files.
    pub(crate) sources: Option<Vec<PathBuf>>,
    pub(crate) no_lines: bool,
    pub(crate) no_inlined: bool,
    /// Also announce methods that are not compiled.
    pub(crate) interpreted: bool,
    /// Words of `JITSCRIBE`.
    words: Vec<String>,
    dir: Option<PathBuf>,
    /// Messages about options that are not valid.
    pub(crate) invalid: Vec<String>,
}

impl Options {
    pub(crate) fn parse(text: &str) -> Self {
        let mut options = Self::default();
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            if !options.take(option) {
                options.invalid.push(format!("invalid option: {option}"));
            }
        }
        options
    }

    fn take(&mut self, option: &str) -> bool {
        match option.split_once(['=', ':']) {
            Some(("names", name)) => {
                self.format = Format::named(name);
                return self.format.is_some();
            }
            Some(("sources", list)) => {
                self.sources = Some(std::env::split_paths(list).collect());
            }
            Some(("hold", pipe)) => {
                self.session = Some(pipe.into());
                self.command = Command::Session;
            }
            Some(("dir", dir)) => self.dir = Some(dir.into()),
            // One that is not known is reported when the scribe is made.
            Some((name, mode)) => self.words.push(format!("{name}={mode}")),
            None => match option {
                "start" => self.command = Command::Start,
                "stop" => self.command = Command::Stop,
                "no-lines" => self.no_lines = true,
                "no-inlined" => self.no_inlined = true,
                "interpreted" => self.interpreted = true,
                "log" => {}
                word => self.words.push(word.to_owned()),
            },
        }
        true
    }

    /// Whether there are options for the scribe, which is created only once.
    pub(crate) fn is_for_scribe(&self) -> bool {
        !self.words.is_empty() || self.dir.is_some()
    }

    /// The settings from the environment, with these options on top.
    pub(crate) fn builder(&self) -> Builder {
        let builder = Scribe::builder().environment().words(&self.words.join(","));
        match &self.dir {
            Some(dir) => builder.dir(dir),
            None => builder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_list_with_commas() {
        let options = Options::parse(
            "perf-map, names:full,no-inlined,interpreted,sources=/a:/b,,hold:/tmp/x",
        );
        assert_eq!((options.command, options.format), (Command::Session, Some(Format::Full)));
        assert_eq!(options.session, Some("/tmp/x".into()));
        assert_eq!(options.sources, Some(vec!["/a".into(), "/b".into()]));
        assert!(
            options.interpreted
                && options.no_inlined
                && !options.no_lines
                && options.invalid.is_empty()
        );
        assert_eq!(options.words, ["perf-map"]);
        assert!(options.is_for_scribe() && !Options::parse("stop").is_for_scribe());
    }

    #[test]
    fn invalid_options_are_reported_and_the_rest_applies() {
        let options = Options::parse("perfmap,names=long,bytes,gdb:off");
        assert_eq!(options.invalid, ["invalid option: names=long"]);
        // The scribe reports the first.
        assert_eq!(options.words, ["perfmap", "bytes", "gdb=off"]);
    }
}
