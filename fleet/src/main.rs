//! The command `jitscribe fleet`: asks the tables that `jitscribe export --parquet` writes on many hosts, by
//! [DataFusion](https://datafusion.apache.org) in this process.

mod batch;
mod diff;
mod error;
mod html;
mod location;
mod printed;
mod queries;
mod report;
mod selection;
mod tables;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::{Error, Result};

/// Ask the profiles of many hosts: which jitted functions cost most, what a deployment changed
///
/// The tables are those of `jitscribe export --parquet DIR`, of any number of hosts, in one folder or bucket. docs/fleet.md describes them, and how to ask them with
/// other engines.
#[derive(Debug, Parser)]
#[command(
    name = "jitscribe fleet",
    bin_name = "jitscribe fleet",
    version,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// The functions of runtimes that cost most, by tier and generation, and on how many hosts
    Top(top::Args),
    Report(report::Args),
    Diff(diff::Args),
    /// The functions that a tier compiles again and again
    Churn(top::Args),
    /// How many samples of each service end in code with a name
    Coverage(top::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            printed::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(verb: &Verb) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Tables(format!("no threads: {error}")))?;
    runtime.block_on(async {
        match verb {
            Verb::Top(args) => top::TOP.run(args).await,
            Verb::Churn(args) => top::CHURN.run(args).await,
            Verb::Coverage(args) => top::COVERAGE.run(args).await,
            Verb::Report(args) => report::run(args).await,
            Verb::Diff(args) => diff::run(args).await,
        }
    })
}
