//! Errors of the commands. Each message says what to do next.

use std::io;
use std::path::{Path, PathBuf};

use crate::{exit_code, text};

/// Why a command failed. The message names the file and the cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {}", text::path(path), text::said(&source.to_string()))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not have the expected format.
    #[error("{}: {}", text::path(path), text::said(cause))]
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
    /// perf wrote no recording; the text says why, and what to type.
    #[error("{0}")]
    NothingRecorded(String),
    /// A process did not respond in time and is skipped, so that it does not block the command.
    #[error("process {0}: not responding, skipped")]
    NotAnswering(u32),
    /// The command line is incomplete or contradictory; the text says what to change.
    #[error("{0}")]
    Usage(String),
    /// The command printed a report that calls for exit code 1. No further message is printed.
    #[error("")]
    Reported,
    /// The recording is complete, but nothing in it got a name.
    #[error(
        "nothing was named: no sample is in code that has a name now (--allow-empty accepts this)"
    )]
    NothingNamed,
    /// A wrapped command ended with this exit code, which becomes our own.
    #[error("")]
    Child(u8),
}

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<jitscribe_inject::Error> for Error {
    fn from(error: jitscribe_inject::Error) -> Self {
        use jitscribe_inject::Error as Of;
        match error {
            Of::File { path, source } => Self::File { path, source },
            Of::Format { path, cause } => Self::Format { path, cause },
            Of::Exists { .. } => Self::Refused(format!("{error}; use --force to replace it")),
            Of::NoImageFolder => Self::Refused(
                "-o - needs --image-dir DIR: perf must be able to find the object files".into(),
            ),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl Error {
    /// For `map_err`: a system error about `path`.
    pub fn file(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { path, source }
    }

    /// For `map_err`: a parse error in the content of `path`.
    pub fn format<E: ToString>(path: impl AsRef<Path>) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |cause| Self::Format { path, cause: cause.to_string() }
    }

    /// The exit code of a command that failed in this way.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Child(code) => *code,
            Self::Usage(_) => exit_code::USAGE,
            Self::NothingNamed => exit_code::NOTHING_NAMED,
            _ => exit_code::FAILED,
        }
    }

    /// Whether a message says why. The others have said it already.
    pub fn has_message(&self) -> bool {
        !matches!(self, Self::Reported | Self::Child(_))
    }

    /// Whether the reader of our standard output closed the pipe. This does not count as a failure.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Stdout(source) | Self::File { source, .. } => {
                source.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }
}
