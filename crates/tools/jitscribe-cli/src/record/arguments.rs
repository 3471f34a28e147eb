//! Separates our options from those of perf on the command line of `jitscribe record`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, Args as _, Command};

use super::args::Args;
use crate::console;

/// The option that passes one word on to `perf record`.
const PASS_ON: &str = "--perf-option=";

/// Turns foreign options of `jitscribe record` into [`PASS_ON`] options, so that
/// the parser sees no unknown options. Other commands are returned unchanged.
pub fn arguments(words: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = verb(&words).filter(|&at| words.get(at).is_some_and(|verb| verb == "record"))
    else {
        return words;
    };
    let (before, after) = words.split_at(at + 1);
    let mut all = before.to_vec();
    let own = console::add_to(Args::augment_args(Command::new("record")));
    all.extend(pass_on(&own, PASS_ON, after));
    all
}

/// The position of the verb, which options of all verbs may precede.
pub fn verb(words: &[OsString]) -> Option<usize> {
    let own = console::add_to(Command::new("jitscribe"));
    let mut at = 1;
    while let Some(with_value) = own_option(&own, words.get(at)?) {
        at += if with_value { 2 } else { 1 };
    }
    Some(at)
}

/// The words of the command line of `own`. Each option that `own` does not know is passed on through the option `by`, whose
/// name ends in `=`.
pub fn pass_on(own: &Command, by: &str, words: &[OsString]) -> Vec<OsString> {
    let mut all = Vec::new();
    // A word without a dash after an option of the tool is the value of that option.
    let mut after_tools = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            all.push(word.clone());
            all.extend(words.cloned());
            break;
        }
        let dashed = word.as_bytes().starts_with(b"-") && word != "-";
        match own_option(own, word) {
            Some(with_value) => {
                all.push(word.clone());
                if with_value {
                    all.extend(words.next().cloned());
                }
                after_tools = false;
            }
            None if dashed || after_tools => {
                let mut passed = OsString::from(by);
                passed.push(word);
                all.push(passed);
                after_tools = true;
            }
            // The parser reports the error.
            None => all.push(word.clone()),
        }
    }
    all
}

/// For an option of ours, whether its value is the next word; `None` for other words.
fn own_option(own: &Command, word: &OsStr) -> Option<bool> {
    let word = word.to_str()?;
    if let Some(long) = word.strip_prefix("--") {
        let (name, inline) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        if name == "help" {
            return Some(false);
        }
        let option = own.get_arguments().find(|option| option.get_long() == Some(name))?;
        return Some(!inline && takes_value(option));
    }
    let letters = word.strip_prefix('-')?;
    let mut options = letters
        .chars()
        .map(|letter| own.get_arguments().find(|option| option.get_short() == Some(letter)));
    if letters.starts_with('h') {
        return Some(false);
    }
    let first = options.next()??;
    if takes_value(first) {
        return Some(options.next().is_none());
    }
    // Of several options without values in one word, all must be ours.
    options.all(|option| option.is_some()).then_some(false)
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let words = arguments(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_of_perf_are_passed_on_and_ours_are_not() {
        assert_eq!(
            of("jitscribe record -F 999 -o x -e cycles -ag -p 7 --call-graph dwarf -- node -o y"),
            "jitscribe record --perf-option=-F --perf-option=999 -o x --perf-option=-e \
             --perf-option=cycles --perf-option=-ag -p 7 --call-graph dwarf -- node -o y"
        );
        assert_eq!(
            of("jitscribe record -ox -p7 --force -z --output=z"),
            "jitscribe record -ox -p7 --force --perf-option=-z --output=z"
        );
    }

    #[test]
    fn options_of_all_verbs_may_precede_the_verb() {
        assert_eq!(
            of("jitscribe -q --color never record -vv -F 9 --quiet -- a -v"),
            "jitscribe -q --color never record -vv --perf-option=-F --perf-option=9 --quiet -- a -v"
        );
        assert_eq!(
            of("jitscribe --color=always record -z"),
            "jitscribe --color=always record --perf-option=-z"
        );
        // More than ours in one word: perf takes all of it.
        assert_eq!(
            of("jitscribe record -vg -qf -a"),
            "jitscribe record --perf-option=-vg -qf --perf-option=-a"
        );
        assert_eq!(of("jitscribe -v"), "jitscribe -v");
    }

    #[test]
    fn a_command_without_the_two_dashes_is_left_to_the_parser() {
        assert_eq!(of("jitscribe record node app.js"), "jitscribe record node app.js");
    }

    #[test]
    fn other_verbs_are_left_alone() {
        assert_eq!(of("jitscribe inject -Z"), "jitscribe inject -Z");
        assert_eq!(of("jitscribe record --help"), "jitscribe record --help");
    }
}
