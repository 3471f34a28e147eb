//! Makes the conformance files, and runs a reader on them.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use jitdump_conformance::{Verdict, all, check_files, folder, run_all, write_files};

const USAGE: &str = "\
Conformance files for readers of the jitdump format and of code logs.

    jitdump-conformance make [DIR]        write the files (default: conformance/files)
    jitdump-conformance check [DIR]       compare the files with what this program makes
    jitdump-conformance run COMMAND…      run `COMMAND… FILE` on each file, and compare what it prints

conformance/README.md describes what a reader has to print.";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases = all();
    let chosen = arguments.get(1).map_or_else(folder, PathBuf::from);
    match arguments.first().map(String::as_str) {
        Some("make") => match write_files(&chosen, &cases) {
            Ok(changed) => {
                println!(
                    "{}: {} files of {} rules, {changed} changed",
                    chosen.display(),
                    2 * cases.len(),
                    cases.len()
                );
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {}: {error}", chosen.display());
                ExitCode::FAILURE
            }
        },
        Some("check") => match check_files(&chosen, &cases) {
            Ok(wrong) if wrong.is_empty() => {
                println!("{}: all files of {} rules are as made", chosen.display(), cases.len());
                ExitCode::SUCCESS
            }
            Ok(wrong) => {
                eprintln!(
                    "error: not as made: {}. Run `jitdump-conformance make`.",
                    wrong.join(", ")
                );
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("error: {}: {error}", chosen.display());
                ExitCode::FAILURE
            }
        },
        Some("run") if arguments.len() > 1 => {
            let verdicts = run_all(&arguments[1..], &cases, &folder());
            let (mut passed, mut differing, mut silent) = (0, 0, 0);
            for (case, verdict) in cases.iter().zip(&verdicts) {
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
            println!(
                "{passed} passed, {differing} differ, {silent} not reported, of {}",
                cases.len()
            );
            if differing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
