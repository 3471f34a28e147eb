//! What can go wrong in a command, told so that the reader knows what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Why a command failed. The message names the file and the cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {cause}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, with the offset where there is one.
        cause: String,
    },
    /// Writing to standard output failed.
    #[error("standard output: {0}")]
    Stdout(io::Error),
    /// The command cannot do what was asked; the text says why and what to type instead.
    #[error("{0}")]
    Refused(String),
    /// The command line does not say what to do; the text says what is missing.
    #[error("{0}")]
    Usage(String),
    /// A report was printed whose content calls for exit code 1. There is nothing more to say.
    #[error("")]
    Reported,
    /// A wrapped command ended with this exit code, which is passed through.
    #[error("")]
    Child(u8),
}

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// For `map_err`: what the system said of `path`.
    pub fn file(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { path, source }
    }

    /// For `map_err`: what a reader said of the content of `path`.
    pub fn format<E: ToString>(path: impl AsRef<Path>) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |cause| Self::Format { path, cause: cause.to_string() }
    }

    /// Whether the reader of our standard output went away: no failure of ours.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Stdout(source) | Self::File { source, .. } => {
                source.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }
}
