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
    words: Vec<Word>,
    dir: Option<PathBuf>,
    /// Messages about options that are not valid.
    pub(crate) invalid: Vec<String>,
}

/// A word of `JITSCRIBE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Off,
    Bytes,
    ArchClock,
    PerfMap,
    Jitdump,
    Gdb,
    NoGdb,
    Valgrind,
    NoValgrind,
    Watch,
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
        let word = match option.split_once(['=', ':']) {
            Some(("names", name)) => {
                self.format = Format::named(name);
                return self.format.is_some();
            }
            Some(("sources", list)) => {
                self.sources = Some(std::env::split_paths(list).collect());
                return true;
            }
            Some(("hold", pipe)) => {
                self.session = Some(pipe.into());
                return self.set_command(Command::Session);
            }
            Some(("dir", dir)) => {
                self.dir = Some(dir.into());
                return true;
            }
            Some(_) => return false,
            None => option,
        };
        let word = match word {
            "start" => return self.set_command(Command::Start),
            "stop" => return self.set_command(Command::Stop),
            "no-lines" => {
                self.no_lines = true;
                return true;
            }
            "no-inlined" => {
                self.no_inlined = true;
                return true;
            }
            "interpreted" => {
                self.interpreted = true;
                return true;
            }
            "log" => return true,
            "off" => Word::Off,
            "bytes" => Word::Bytes,
            "arch-clock" => Word::ArchClock,
            "perf-map" => Word::PerfMap,
            "jitdump" => Word::Jitdump,
            "gdb" => Word::Gdb,
            "no-gdb" => Word::NoGdb,
            "valgrind" => Word::Valgrind,
            "no-valgrind" => Word::NoValgrind,
            "watch" => Word::Watch,
            _ => return false,
        };
        self.words.push(word);
        true
    }

    fn set_command(&mut self, command: Command) -> bool {
        self.command = command;
        true
    }

    /// Whether there are options for the scribe, which is created only once.
    pub(crate) fn is_for_scribe(&self) -> bool {
        !self.words.is_empty() || self.dir.is_some()
    }

    /// The settings from the environment, with these options on top.
    pub(crate) fn builder(&self) -> Builder {
        self.words.iter().fold(Scribe::builder().environment(), |builder, word| match word {
            Word::Off => builder.start_disabled(),
            Word::Bytes => builder.with_bytes(),
            Word::ArchClock => builder.arch_clock(),
            Word::PerfMap => builder.perf_map(),
            Word::Jitdump => match &self.dir {
                Some(dir) => builder.jitdump_in(dir),
                None => builder.jitdump(),
            },
            Word::Gdb => builder.gdb(),
            Word::NoGdb => builder.no_gdb(),
            Word::Valgrind => match &self.dir {
                Some(dir) => builder.valgrind_in(dir),
                None => builder.valgrind(),
            },
            Word::NoValgrind => builder.no_valgrind(),
            Word::Watch => builder.control_thread(),
        })
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
        assert_eq!(options.words, [Word::PerfMap]);
        assert!(options.is_for_scribe() && !Options::parse("stop").is_for_scribe());
    }

    #[test]
    fn invalid_options_are_reported_and_the_rest_applies() {
        let options = Options::parse("perfmap,names=long,bytes,a=b");
        assert_eq!(options.words, [Word::Bytes]);
        assert_eq!(options.invalid.len(), 3, "{:?}", options.invalid);
        assert!(options.invalid[0].contains("perfmap"));
    }
}
