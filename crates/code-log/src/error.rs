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
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// It does not begin as a log does.
    #[error("no code log: {0}")]
    NotALog(&'static str),
    /// A log of a later version of this project.
    #[error(
        "a code log of version {version}; this one reads version {}",
        jitdump::extension::log::VERSION
    )]
    Version {
        /// What it says.
        version: u32,
    },
}
