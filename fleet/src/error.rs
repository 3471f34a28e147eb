//! Why a command failed.

use std::fmt::Display;
use std::io;
use std::path::Path;

use datafusion::common::DataFusionError;
use printable::Escaped;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// DataFusion could not read the tables, or not answer.
    #[error("{tables}: {cause}")]
    Engine {
        /// Where the tables are.
        tables: String,
        /// What it says.
        cause: Box<DataFusionError>,
    },
    /// The tables are not what `jitscribe export --parquet` writes.
    #[error("{0}")]
    Tables(String),
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// A file could not be written.
    #[error("{path}: {cause}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        cause: io::Error,
    },
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Stdout(io::Error),
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Of a file.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = Escaped(path.as_os_str().as_encoded_bytes()).to_string();
        move |cause| Self::File { path, cause }
    }

    /// Of the engine, which was asked about these tables.
    pub fn engine(tables: &dyn Display) -> impl Fn(DataFusionError) -> Self {
        let tables = tables.to_string();
        move |cause| Self::Engine { tables: tables.clone(), cause: Box::new(cause) }
    }

    /// The exit code of the command: 2 if the command line is wrong, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }

    /// Whether the reader of standard output has gone, which is no failure.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
