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
#[path = "../it/common/notices.rs"]
mod notices;
mod roster;
mod stress;
#[allow(unsafe_code)]
mod sys;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use test_privilege::{Privilege, have};

type Test = (&'static str, fn());

/// Tests of what QEMU's user mode has not: seccomp, ptrace, `MADV_DONTFORK`, limits of the address space, the kernel's own view of a
/// process's descriptors, Valgrind.
const NOT_UNDER_QEMU: &[&str] = &[
    "no_limit_is_a_signal",
    "without_memfd_create_the_log_is_found_in_memory",
    "without_what_makes_forks_known",
    "the_table_of_descriptors_is_enlarged_for_one_thread_alone",
    "a_host_that_closes_all_descriptors_keeps_its_files",
    "a_log_that_cannot_grow_says_why",
    "memcheck_does_not_search_the_room_of_a_log",
    "a_child_without_a_log_leaves_its_parents_alone",
    "each_system_call_may_be_forbidden",
    "a_confined_process_is_read_while_it_announces",
    "a_child_of_a_fork_has_its_own_context",
    "a_context_does_without_system_calls",
    "a_context_is_whole_at_each_instruction_of_an_update",
];

/// What a test needs.
fn needs(test: &str) -> &'static [Privilege] {
    match test {
        "a_context_is_whole_at_each_instruction_of_an_update" => {
            &[Privilege::Kernel, Privilege::Trace]
        }
        // As an ordinary user, it needs no other one.
        "a_confined_process_is_read_while_it_announces" if rustix::process::geteuid().is_root() => {
            &[Privilege::Kernel, Privilege::OtherUsers]
        }
        _ if NOT_UNDER_QEMU.contains(&test) => &[Privilege::Kernel],
        _ => &[],
    }
}

/// Whether all is there that a test needs. The thread has the name of the test, which is reported.
fn can_run(test: &str) -> bool {
    let needs = needs(test);
    let thread = std::thread::Builder::new().name(test.to_owned());
    thread.spawn(move || have(needs)).unwrap().join().unwrap()
}

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
        if !can_run(name) {
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
