//! Whether V8 writes its dump and its log only because `record` asked it to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::runtimes::{self, Preparation};

/// The variable by which `record` asks node.
const VARIABLE: &str = "NODE_OPTIONS";

/// The beginnings of flags upon which V8 writes a dump or a log, with dashes for underscores.
const WRITERS: [&str; 5] = ["--perf", "--prof", "--log", "--no-log", "--ll-prof"];

/// What `record` adds to a command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Added {
    /// The whole value of [`VARIABLE`], if the user's own part of it asks for no file.
    options: Option<Vec<u8>>,
    /// The flags on the command line.
    flags: Vec<Vec<u8>>,
}

/// Who asked V8 for its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// This is not known, or the process is not node.
    #[default]
    Unknown,
    /// Only `record`.
    Record,
    /// The user, by flags of their own.
    User,
}

impl Added {
    /// What `prepared` adds to the command and to the environment, where the user's variable has this value.
    pub fn to(prepared: &Preparation, users: Option<&OsStr>) -> Self {
        let has_own = users.is_some_and(|users| has_writer(users.as_bytes(), b' '));
        let options = prepared.variables.get(OsStr::new(VARIABLE)).filter(|_| !has_own);
        Self {
            options: options.map(|options| options.as_bytes().to_owned()),
            flags: prepared.flags.iter().map(|flag| flag.as_bytes().to_owned()).collect(),
        }
    }

    /// Whether there may be processes for which [`Cause::Record`] is the answer.
    pub fn asks(&self) -> bool {
        self.options.is_some()
    }

    /// The cause in a process with this command line and this environment, each a list of words that end in NUL. `before` is the
    /// cause that was found earlier: programs overwrite both to set the title that `ps` shows.
    pub fn cause(&self, command: &[u8], environment: &[u8], before: Cause) -> Cause {
        let mut words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let is_node = words.next().is_some_and(|word| runtimes::is_node(OsStr::from_bytes(word)));
        let mut words = words.peekable();
        if before == Cause::User || !is_node || words.peek().is_none() {
            return before;
        }
        let own = words.filter(|word| !self.flags.iter().any(|flag| flag == word));
        if own.into_iter().any(is_writer) {
            return Cause::User;
        }
        let name = format!("{VARIABLE}=");
        let value = |word: &[u8]| word.strip_prefix(name.as_bytes()).map(<[u8]>::to_owned);
        match environment.split(|byte| *byte == 0).find_map(value) {
            None => before,
            value if value == self.options => Cause::Record,
            Some(_) => Cause::User,
        }
    }
}

fn has_writer(words: &[u8], between: u8) -> bool {
    words.split(|byte| *byte == between).any(is_writer)
}

fn is_writer(word: &[u8]) -> bool {
    let word: Vec<u8> = word.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
    // Quotes are allowed in the variable.
    let word = word.strip_prefix(b"\"").unwrap_or(&word);
    WRITERS.iter().any(|writer| word.starts_with(writer.as_bytes()))
}

/// Whether a path is that of V8's perf map of a process.
pub fn is_map_of(path: &Path, pid: u32) -> bool {
    path.file_name().is_some_and(|name| name == OsStr::new(&map_name(pid)))
}

/// The name of the perf map of a process.
pub fn map_name(pid: u32) -> String {
    format!("perf-{pid}.map")
}

/// Whether a path is that of V8's dump of a process.
pub fn is_dump_of(path: &Path, pid: u32) -> bool {
    path.file_name().is_some_and(|name| name == OsStr::new(&format!("jit-{pid}.dump")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(users: Option<&str>) -> Added {
        let mut prepared = Preparation::default();
        prepared.variables.insert(VARIABLE.into(), "--perf-prof".into());
        prepared.flags.push("--logfile=/d/v8.log".into());
        Added::to(&prepared, users.map(OsStr::new))
    }

    fn cause(command: &str, environment: &str, before: Cause) -> Cause {
        let nul = |text: &str| text.replace(' ', "\0").into_bytes();
        added(None).cause(&nul(command), &nul(environment), before)
    }

    #[test]
    fn files_that_the_user_asked_for_are_the_users() {
        const OURS: &str = "A=b NODE_OPTIONS=--perf-prof C=d";
        let unknown = Cause::Unknown;
        assert_eq!(cause("node a.js", OURS, unknown), Cause::Record);
        assert_eq!(cause("/usr/bin/node --logfile=/d/v8.log a.js", OURS, unknown), Cause::Record);
        for flag in ["--perf_prof", "--prof", "--logfile=x", "--log-code", "--ll_prof"] {
            assert_eq!(cause(&format!("node {flag} a.js"), OURS, unknown), Cause::User, "{flag}");
        }
        // A script sets the variable itself.
        assert_eq!(cause("node a.js", "NODE_OPTIONS=--perf-basic-prof", unknown), Cause::User);
        // Before the shell becomes node, and after node has changed its title.
        assert_eq!(cause("sh -c x", OURS, unknown), unknown);
        assert_eq!(cause("node", OURS, unknown), unknown);
        assert_eq!(cause("my server", "", Cause::Record), Cause::Record);
        assert_eq!(cause("node a.js", OURS, Cause::User), Cause::User);
    }

    #[test]
    fn a_variable_of_the_user_may_ask_for_them() {
        assert!(added(Some("--max-old-space-size=99")).asks());
        assert!(!added(Some("--perf-basic-prof")).asks());
        assert!(!added(Some("--inspect \"--perf_prof\"")).asks());
    }
}
