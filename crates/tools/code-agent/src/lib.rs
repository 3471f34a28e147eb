//! The logic of `jitscribe agent`: which processes of a machine have JIT-compiled code, and which code was at an address at a
//! time.
//!
//! - [`Processes`] is the table of processes, each with its sources of code. It reads of each source what has changed
//!   ([`code_log::Follower`]), within [`Limits`].
//! - [`FileReading`] is what was read of a perf map or a jitdump, and [`KnownFile`] what the next reading needs to know. They are
//!   parsed here as they grow.
//! - [`protocol`] has the requests and the answers. [`access`] decides who may ask about whose processes.
//! - [`Looks`] decides when a process is examined for sources again.
//! - [`Images`] is the list of the images by build-id that are kept of codes that were asked for.
//! - [`metrics`] counts, and writes the counts as Prometheus reads them.
//!
//! It opens no file, reads no clock and prints nothing: the caller passes sources, times and requests.
#![forbid(unsafe_code)]

pub mod access;
mod bodies;
mod body;
mod build_id;
mod file;
mod file_codes;
mod followed_file;
mod image;
mod images;
mod limits;
mod log;
mod looks;
pub mod metrics;
mod only_code;
mod process_files;
mod processes;
mod processes_with_files;
pub mod protocol;
mod request_budget;

pub use build_id::BuildId;
pub use file::{FileIdentity, FileKind, FilePart, FileReading, FileStatus, KnownFile};
pub use images::{ImageChange, ImageCounts, Images};
pub use limits::Limits;
pub use looks::Looks;
pub use processes::{FoundLog, ProcessFacts, ProcessKey, Processes};
