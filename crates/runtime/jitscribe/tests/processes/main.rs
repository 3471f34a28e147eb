//! The library in processes of its own, which are killed, forked, confined and robbed of what they need.
//!
//!     cargo test -p jitscribe --test processes [-- PART-OF-A-NAME...]
//!
//! `JITSCRIBE_STRESS_OPS` (1,000,000 unless set) is how many codes the stress test loads, moves and unloads, and
//! `JITSCRIBE_CHURN` (2,000,000) how many are made and die at the same addresses.
//! Tests that need root to make a hostile surrounding fail without: run them as root, or in a user namespace
//! (`unshare -r`).
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit, reason = "a test")]

mod churn;
mod context;
mod degraded;
mod guest;
mod hostile;
mod live;
mod logs;
mod roster;
mod stress;
#[allow(unsafe_code)]
mod sys;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, rest)) =
        arguments.split_first().filter(|(first, _)| first.starts_with("role:"))
    {
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        play(role.trim_start_matches("role:"), &rest);
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let tests = [
        stress::TESTS,
        hostile::TESTS,
        degraded::TESTS,
        guest::TESTS,
        live::TESTS,
        churn::TESTS,
        context::TESTS,
    ]
    .concat();
    let mut failed = Vec::new();
    for (name, test) in tests {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let start = Instant::now();
        let is_ok = catch_unwind(AssertUnwindSafe(test)).is_ok();
        let seconds = start.elapsed().as_secs_f32();
        println!("test {name} ... {} ({seconds:.1} s)", if is_ok { "ok" } else { "FAILED" });
        if !is_ok {
            failed.push(name);
        }
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a process started by [`logs::player`] does.
fn play(role: &str, arguments: &[&str]) {
    match role {
        "churn" => churn::play(arguments),
        "worker" => stress::worker(arguments),
        "hostile" => hostile::play(arguments),
        "guest" => guest::play(arguments),
        "degraded" => degraded::play(arguments),
        "announcer" => live::play(arguments),
        "context" => context::play(arguments),
        _ => panic!("no role {role}"),
    }
}
