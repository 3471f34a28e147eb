//! Why a log could not be read.

use std::io;

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading failed.
    #[error("reading the code log at offset {at:#x}: {cause}")]
    Read {
        /// Offset in the log.
        at: u64,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// It does not begin like a log.
    #[error("not a code log: {0}")]
    NotALog(&'static str),
    /// A log of a later version of this project.
    #[error(
        "code log version {version} is not supported; this program reads version {}",
        jitdump::extension::log::VERSION
    )]
    Version {
        /// The version of the log.
        version: u32,
    },
}
