//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use printable::{path as shown, said};

/// An error. The message has the name of the file and the cause; characters that are not printable are escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {}", shown(path), said(&source.to_string()))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has an invalid content.
    #[error("{}: {}", shown(path), said(cause))]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the offset if there is one.
        cause: String,
    },
    /// A file that was to be created exists already.
    #[error("{}: already exists", shown(path))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The folder to write into belongs to another user, or is reached through a link of another user.
    #[error(
        "{}: this {} belongs to another user (uid {owner}), who could read and replace the files written there; \
         remove it or choose another path", shown(path), if *is_link { "link" } else { "folder" }
    )]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// The owner.
        owner: u32,
        /// Whether it is a link.
        is_link: bool,
    },
    /// A path does not fit into a mapping event.
    #[error("{}: the path is too long", shown(path))]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// The recording is written to a stream, but there is no folder for the images.
    #[error("a recording that is written to a stream needs a folder for its images")]
    NoImageFolder,
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// For `map_err`: a system error for `path`.
    pub(crate) fn file(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { path, source }
    }

    /// For `map_err`: an error in the content of `path`.
    pub(crate) fn format<E: ToString>(path: impl AsRef<Path>) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |cause| Self::Format { path, cause: cause.to_string() }
    }

    /// For `map_err`: an error in reading the recording `input`.
    pub(crate) fn reading(input: &Path) -> impl Fn(perf_data::Error) -> Self {
        move |error| match error {
            perf_data::Error::Read(source) => Self::File { path: input.to_owned(), source },
            other => Self::format(input)(other),
        }
    }

    /// For `map_err`: an error in copying the recording `input` to `output`.
    pub(crate) fn writing(input: &Path, output: &Path) -> impl Fn(perf_data::Error) -> Self {
        move |error| match error {
            perf_data::Error::Write(source) => Self::File { path: output.to_owned(), source },
            other => Self::reading(input)(other),
        }
    }
}
