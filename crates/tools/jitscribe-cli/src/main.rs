//! The `jitscribe` command: makes JIT-compiled code visible in perf recordings, in Valgrind output and to debuggers.

mod bridge;
mod callgrind;
mod check;
mod child;
mod companion;
mod ctl;
mod debug;
mod demo;
mod descriptors;
mod dump;
mod error;
mod files;
mod foreign;
mod inject;
mod java_agent;
mod line_table;
mod note;
mod process;
mod record;
mod run;
mod runtimes;
mod search_path;
mod shell;
mod source_lines;
mod symbols;
mod text;
mod valgrind;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

pub use error::{Error, Result};

/// Make JIT-compiled code visible to perf, Valgrind and debuggers: names, source lines, assembly and call stacks
#[derive(Debug, Parser)]
#[command(name = "jitscribe", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Args),
    Record(record::Args),
    Inject(inject::Args),
    Dump(dump::Args),
    Check(check::Args),
    Ctl(ctl::Args),
    Debug(debug::Args),
    Callgrind(callgrind::Args),
    Memcheck(valgrind::memcheck::Args),
    Massif(valgrind::massif::Args),
    Dhat(valgrind::dhat::Args),
    Cachegrind(valgrind::cachegrind::Args),
    Demo(demo::Args),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    if foreign::main_of_helper() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse_from(record::arguments(run::arguments(std::env::args_os().collect())));
    let done = match cli.verb {
        Verb::Run(args) => run::run(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Inject(args) => inject::run(&args),
        Verb::Dump(args) => dump::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Ctl(args) => ctl::run(&args),
        Verb::Debug(args) => debug::run(&args),
        Verb::Callgrind(args) => callgrind::run(&args),
        Verb::Memcheck(args) => valgrind::memcheck::run(&args),
        Verb::Massif(args) => valgrind::massif::run(&args),
        Verb::Dhat(args) => valgrind::dhat::run(&args),
        Verb::Cachegrind(args) => valgrind::cachegrind::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Completions(args) => shell::completions(&args, Cli::command()),
        Verb::Man(args) => shell::man(&args, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(Error::Reported) => ExitCode::FAILURE,
        Err(Error::Child(code)) => ExitCode::from(code),
        Err(error) => {
            note::error(&error);
            if matches!(error, Error::Usage(_)) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
