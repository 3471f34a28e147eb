//! Addresses are named in signal handlers.

use std::process::Command;

use crate::installed::tree::{Link, compile, run};

const SYMBOLIZE: &str = "tests/c/symbolize.c";

fn said(link: Link, role: &str) -> String {
    run(Command::new(compile(SYMBOLIZE, link, &[])).arg(role).env_remove("JITSCRIBE"))
}

#[test]
fn a_crash_handler_names_the_code_that_crashed() {
    for link in [Link::Shared, Link::Static] {
        let said = said(link, "crash");
        let used: u32 = said.split(' ').next().and_then(|size| size.parse().ok()).expect(&said);
        // Signal handlers may have 8 KiB.
        assert!(said.ends_with(" bytes of stack\n") && used < 4096, "{said}");
    }
}

#[test]
fn a_handler_that_interrupts_announcements_finds_all_other_code() {
    for link in [Link::Shared, Link::Static] {
        assert_eq!(said(link, "always"), "all is so\n");
    }
}

#[test]
fn moved_and_unloaded_code_and_children_of_forks() {
    for link in [Link::Shared, Link::Static] {
        assert_eq!(said(link, "changes"), "all is so\n");
    }
}

#[test]
fn a_lookup_among_many_codes_ends() {
    let said = said(Link::Static, "cost");
    assert!(said.ends_with(" ns for one of 20000 codes\n"), "{said}");
}
