//! Makes the conformance files, and runs a reader on them.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::path::PathBuf;
use std::process::ExitCode;

use jitdump_conformance::{Case, Verdict, all, check_files, folder, run_all, write_files};

const USAGE: &str = "\
Conformance files for readers of the jitdump format and of code logs.

    jitdump-conformance make [DIR]        write the files (default: conformance/files)
    jitdump-conformance check [DIR]       compare the files with what this program makes
    jitdump-conformance run COMMAND…      run `COMMAND… FILE` on each file, and compare what it prints

conformance/README.md describes what a reader has to print.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases = all();
    let chosen = arguments.get(1).map_or_else(folder, PathBuf::from);
    let done = match arguments.first().map(String::as_str) {
        Some("make") => write_files(&chosen, &cases).map(|changed| {
            let (files, rules) = (2 * cases.len(), cases.len());
            println!("{}: {files} files of {rules} rules, {changed} changed", chosen.display());
            true
        }),
        Some("check") => check_files(&chosen, &cases).map(|wrong| {
            if wrong.is_empty() {
                println!("{}: all files of {} rules are as made", chosen.display(), cases.len());
            } else {
                let wrong = wrong.join(", ");
                eprintln!("error: not as made: {wrong}. Run `jitdump-conformance make`.");
            }
            wrong.is_empty()
        }),
        Some("run") if arguments.len() > 1 => Ok(report(&cases, &arguments[1..])),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}: {error}", chosen.display());
            ExitCode::FAILURE
        }
    }
}

/// Runs a reader on all files, and prints where it differs. Returns whether all agree.
fn report(cases: &[Case], reader: &[String]) -> bool {
    let (mut passed, mut differing, mut silent) = (0, 0, 0);
    for (case, verdict) in cases.iter().zip(run_all(reader, cases, &folder())) {
        match verdict {
            Verdict::Passes => passed += 1,
            Verdict::Differs(how) => {
                differing += 1;
                println!("differs     {}: {}\n            {how}", case.name, case.rule);
            }
            Verdict::CannotSay(field) => {
                silent += 1;
                println!("cannot say  {}: does not report {field}", case.name);
            }
        }
    }
    let of = cases.len();
    println!("{passed} passed, {differing} differ, {silent} not reported, of {of}");
    differing == 0
}
