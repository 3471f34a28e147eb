//! Where the new recording goes.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use super::output::Output;
use crate::{Error, Result};

/// Where the new recording is written.
pub enum Destination<'w> {
    /// A file, which appears complete or not at all.
    File(Output),
    /// To a stream, in the format of `perf record -o -`.
    Stream(Box<dyn Write + 'w>),
}

impl fmt::Debug for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(output) => f.debug_tuple("File").field(output).finish(),
            Self::Stream(_) => f.debug_tuple("Stream").finish_non_exhaustive(),
        }
    }
}

impl Destination<'_> {
    /// The folder of the images if none was chosen: the path of the file with `.jit` appended.
    pub(crate) fn image_folder(&self) -> Result<PathBuf> {
        match self {
            Self::Stream(_) => Err(Error::NoImageFolder),
            Self::File(output) => {
                let mut name = OsString::from(output.path());
                name.push(".jit");
                Ok(name.into())
            }
        }
    }
}
