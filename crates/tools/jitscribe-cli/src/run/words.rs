//! The command line of `jitscribe run`: which words belong to the tool, and which tools record.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::{Args as _, Command};

use super::Args;
use crate::console;
use crate::record::{pass_on, verb};

/// The option that names the tool.
const WITH: &str = "--with";
/// The option that passes one word on to a debugger.
const PASS_ON: &str = "--tool-option=";

/// Turns `run --with TOOL` into `record --bridge --tool=TOOL` if the tool records, and turns the options of a debugger into
/// [`PASS_ON`] options. Other commands are returned unchanged.
pub fn arguments(words: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = verb(&words).filter(|&at| words.get(at).is_some_and(|verb| verb == "run"))
    else {
        return words;
    };
    let (before, after) = words.split_at(at + 1);
    if let Some((tool, rest)) = recorder(after) {
        let mut all = before.to_vec();
        all.truncate(at);
        all.extend(["record", "--bridge"].map(OsString::from));
        if tool != "perf" {
            all.push(format!("--tool={tool}").into());
        }
        all.extend(rest);
        return all;
    }
    let own = Args::augment_args(Command::new("run"));
    let is_with = |word: &&OsString| word.as_bytes().starts_with(WITH.as_bytes());
    let has_tool = after.iter().take_while(|word| *word != "--").any(|word| is_with(&word));
    // Debuggers have options -q and -v of their own.
    let own = if has_tool { own } else { console::add_to(own) };
    let mut all = before.to_vec();
    all.extend(pass_on(&own, PASS_ON, after));
    all
}

/// The tool, if it is one that records, and all other words.
fn recorder(words: &[OsString]) -> Option<(&'static str, Vec<OsString>)> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (options, command) = words.split_at(end);
    let inline =
        |word: &OsString| Some(word.to_str()?.strip_prefix(WITH)?.strip_prefix('=')?.to_owned());
    let at = options.iter().position(|word| word == WITH || inline(word).is_some())?;
    let (name, taken) = match inline(options.get(at)?) {
        Some(name) => (name, 1),
        None => (options.get(at + 1)?.to_str()?.to_owned(), 2),
    };
    let tool = match name.as_str() {
        "valgrind" | "memcheck" => "memcheck",
        "callgrind" => "callgrind",
        "cachegrind" => "cachegrind",
        "massif" => "massif",
        "dhat" => "dhat",
        "perf" => "perf",
        _ => return None,
    };
    let rest = options.get(..at)?.iter().chain(options.get(at + taken..)?).chain(command);
    Some((tool, rest.cloned().collect()))
}

#[cfg(test)]
mod tests {
    use super::super::debugger;
    use super::*;

    fn of(line: &str) -> String {
        let words = arguments(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tools_that_record_are_recorders() {
        assert_eq!(
            of("jitscribe run -o x --with valgrind --leak-check=full -- a --with gdb"),
            "jitscribe record --bridge --tool=memcheck -o x --leak-check=full -- a --with gdb"
        );
        assert_eq!(of("jitscribe run --with=perf -- a"), "jitscribe record --bridge -- a");
    }

    #[test]
    fn who_names_no_tool_is_told_of_all() {
        let said = debugger("strace").expect_err("no tool of ours");
        let (_, tools) = said.split_once(" are ").expect("a list");
        for tool in tools.split(", ") {
            let records = recorder(&["--with", tool].map(OsString::from)).is_some();
            assert!(records != debugger(tool).is_ok(), "{tool}");
        }
    }

    #[test]
    fn a_debugger_gets_its_options() {
        assert_eq!(
            of("jitscribe run --with gdb -batch -ex run --no-env -- a -ex b"),
            "jitscribe run --with gdb --tool-option=-batch --tool-option=-ex --tool-option=run \
             --no-env -- a -ex b"
        );
        assert_eq!(of("jitscribe run -- a -b"), "jitscribe run -- a -b");
        assert_eq!(of("jitscribe dump --with gdb"), "jitscribe dump --with gdb");
    }
}
