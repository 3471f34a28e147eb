//! A storm over processes that announce code: they are killed, they fork in every way, they are short of everything, and
//! system calls are refused to them. Each time, what readers find is compared with what the process itself says.
//!
//! `storm JITSCRIBE [SECONDS]` runs about so long (default 300), prints a table, and fails if a single announcement was lost,
//! torn or mixed with another, or if a process hung or ended otherwise than it had to. See docs/reliability.md.
#![allow(
    unsafe_code,
    reason = "`sys` has all of it, and the child that borrows its parent's memory"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

mod check;
mod host;
mod scenes;
mod sys;
mod truth;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == "host" => host::main(rest),
        Some((jitscribe, rest)) if rest.len() < 2 => {
            let seconds = rest.first().map_or(Ok(300), |word| word.parse());
            let Ok(seconds) = seconds else { return usage() };
            scenes::all(PathBuf::from(jitscribe), seconds)
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: storm JITSCRIBE [SECONDS]");
    ExitCode::from(2)
}
