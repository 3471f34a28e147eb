//! `jitscribe agent`: knows the JIT-compiled code of all processes of a machine, and answers which code was at an address at a
//! time.
//!
//! [`service`] is the loop that serves clients ([`clients`]) and keeps the table of processes up to date. [`discovery`] examines
//! processes in a thread of its own, by workers, and [`files`] has perf maps and jitdumps read by workers. What is decided without any of these is in the crate `code-agent`.

mod args;
mod ask;
mod clients;
mod discovery;
mod files;
mod images;
mod look_age;
mod memory_file;
mod metrics;
mod patient;
mod proc_files;
mod service;

use crate::Result;

/// Know the JIT-compiled code of all processes, and answer which code was at an address
///
/// The agent finds processes that keep a code log, or write a jitdump or a perf map, reads what changes, and answers requests on a Unix socket.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "EXAMPLES:
  jitscribe agent                                  # serve /run/jitscribe/agent.sock
  jitscribe agent --once                           # print the processes with JIT-compiled code, and end
  jitscribe agent ask 4711 0x7f2ad6c19363          # what is there now
  jitscribe agent --metrics 127.0.0.1:9464         # also serve metrics for Prometheus
  jitscribe agent --images /var/lib/jitscribe/images # also keep images of what is asked for, for debuginfod
  jitscribe agent processes                        # what a running agent knows"
)]
pub struct Args {
    #[command(flatten)]
    service: args::ServiceArgs,
    #[command(subcommand)]
    request: Option<Request>,
}

#[derive(Debug, clap::Subcommand)]
enum Request {
    Ask(ask::AskArgs),
    Processes(ask::ProcessesArgs),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    match &args.request {
        Some(Request::Ask(args)) => ask::ask(args),
        Some(Request::Processes(args)) => ask::processes(args),
        None if args.service.once => service::once(),
        None => service::serve(&args.service),
    }
}
