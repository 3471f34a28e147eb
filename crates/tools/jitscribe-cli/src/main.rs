//! The `jitscribe` command: makes JIT-compiled code visible in perf recordings, in Valgrind output and to debuggers.

mod agent;
mod annotate;
mod bridge;
mod browser;
mod callgrind;
mod check;
mod child;
mod collect;
mod companion;
mod console;
mod core_sources;
mod ctl;
mod debug;
mod demo;
mod descriptors;
mod diff;
mod dump;
mod error;
mod exit_code;
mod export;
mod files;
mod firefox_server;
mod fleet;
mod foreign;
mod heap_image;
mod html;
mod inject;
mod java_agent;
mod jitdump_folder;
mod line_table;
mod note;
mod pager;
mod perf_access;
mod process;
#[cfg(feature = "push")]
mod push;
mod record;
mod recorded;
mod report;
mod run;
mod runtimes;
mod sample_summary;
mod search_path;
mod selection;
mod shell;
mod sort;
mod source_lines;
mod stage_bar;
mod symbols;
mod text;
mod top;
mod unnamed;
mod unusable;
mod valgrind;
mod view;
mod windows;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use error::{Error, Result};

/// Make JIT-compiled code visible to perf, Valgrind and debuggers: names, source lines, assembly and call stacks
#[derive(Debug, Parser)]
#[command(
    name = "jitscribe",
    version,
    arg_required_else_help = true,
    after_help = exit_code::help()
)]
struct Cli {
    #[command(flatten)]
    console: console::Args,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Args),
    Record(record::Args),
    Inject(inject::Args),
    Report(report::Args),
    Export(export::Args),
    #[cfg(feature = "push")]
    Push(push::Args),
    Annotate(annotate::Args),
    Diff(diff::Args),
    Top(top::Args),
    Collect(collect::Args),
    Fleet(fleet::Args),
    Dump(dump::Args),
    Check(check::Args),
    Ctl(ctl::Args),
    Debug(debug::Args),
    Agent(agent::Args),
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
    let words = record::arguments(run::arguments(std::env::args_os().collect()));
    let command = Cli::command().color(console::color_of(&words).into());
    let parsed = command.try_get_matches_from(words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(refused) => return print_instead(&refused),
    };
    console::configure(cli.console);
    let done = match cli.verb {
        Verb::Run(args) => run::run(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Inject(args) => inject::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Export(args) => export::run(&args),
        #[cfg(feature = "push")]
        Verb::Push(args) => push::run(&args),
        Verb::Annotate(args) => annotate::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Collect(args) => collect::run(&args),
        Verb::Fleet(args) => fleet::run(&args),
        Verb::Dump(args) => dump::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Ctl(args) => ctl::run(&args),
        Verb::Debug(args) => debug::run(&args),
        Verb::Agent(args) => agent::run(&args),
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
        Err(error) => {
            if error.has_message() {
                note::error(&error);
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints what the parser of the command line has to say: help, or why it refuses the line.
fn print_instead(what: &clap::Error) -> ExitCode {
    let printed = what.print();
    match printed {
        _ if what.use_stderr() => ExitCode::from(exit_code::USAGE),
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            note::error(&Error::Stdout(error));
            ExitCode::from(exit_code::FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}
