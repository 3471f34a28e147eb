//! How the agent serves.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the agent listens.
pub const SOCKET: &str = "/run/jitscribe/agent.sock";

/// How the agent serves.
#[derive(Debug, clap::Args)]
pub struct ServiceArgs {
    /// Listen on this Unix socket
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
    /// How often changes of the processes are read, in seconds; what is asked for is always up to date
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub interval: f64,
    /// Answer this user, given by id, about all processes, as root and the user of the agent (may be repeated)
    #[arg(long, value_name = "UID")]
    pub allow_user: Vec<u32>,
    /// How long the code of a process that has ended can be asked for, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub keep_ended: f64,
    /// Serve metrics for Prometheus on this address of loopback
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Keep images of codes that were asked for by build-id in this folder, for debuginfod
    #[arg(long, value_name = "DIR")]
    pub images: Option<PathBuf>,
    /// The most that all images may take, in MiB; those that were asked for longest ago make way
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub images_limit: u64,
    /// Continue as this user, given by id, after the start as root; a helper that opens files of processes stays root
    #[arg(long, value_name = "UID", default_value_t = 65_534)]
    pub run_as: u32,
    /// Examine all processes once, print those with JIT-compiled code as JSON lines, and end
    #[arg(long)]
    pub once: bool,
}
