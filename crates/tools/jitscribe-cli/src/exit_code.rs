//! The exit codes of all verbs.

use std::fmt::Write as _;

/// The command failed, or `check` found an error.
pub const FAILED: u8 = 1;
/// The command line is incomplete or contradictory.
pub const USAGE: u8 = 2;
/// The recording is complete, but it has no sample in code that got a name.
pub const NOTHING_NAMED: u8 = 3;

/// What each exit code means: for the help, and for `docs/scripts.md`, which a test compares with it.
const TABLE: [(&str, &str); 7] = [
    ("0", "done"),
    ("1", "failed; the message names the cause"),
    ("2", "wrong usage"),
    ("3", "record, inject: no sampled jitted code has a name; --allow-empty makes it 0"),
    ("126, 127", "record, run: the command cannot be executed, or is not found"),
    ("128 + N", "signal N ended the command, or interrupted jitscribe (130: Ctrl-C)"),
    ("others", "record, run: the exit code of the command"),
];

/// The table for `--help`.
pub fn help() -> String {
    let mut text = String::from("EXIT CODES:");
    for (code, meaning) in TABLE {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n  {code:<9} {meaning}");
    }
    text.push_str(
        "\n\n  An exit code of the recorded command other than 0 takes precedence over 3.",
    );
    text
}
