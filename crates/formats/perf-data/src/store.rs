//! Storage of a recording's bytes, always readable at any offset.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::error::{Cause, Error};

/// A file, or bytes in memory.
#[derive(Debug)]
pub(crate) enum Store {
    File { file: File, len: u64 },
    Memory(Vec<u8>),
}

impl Store {
    pub(crate) fn file(file: File) -> Result<Self, Error> {
        let len = file.metadata().map_err(Error::Read)?.len();
        Ok(Self::File { file, len })
    }

    /// Copies a stream into an unlinked temporary file, because it must be read more than once.
    pub(crate) fn spool(mut stream: impl Read) -> Result<Self, Error> {
        let mut file = tempfile::tempfile_in(spool_directory()).map_err(Error::Read)?;
        io::copy(&mut stream, &mut file).map_err(Error::Read)?;
        Self::file(file)
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        }
    }

    /// Reads as many bytes as there are, up to the buffer's length.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        match self {
            Self::File { file, .. } => loop {
                match file.read_at(buffer, offset) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => return read.map_err(Error::Read),
                }
            },
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let mut rest = bytes.get(start..).unwrap_or_default();
                rest.read(buffer).map_err(Error::Read)
            }
        }
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let mut done = 0_usize;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
            match self.read_at(rest, at)? {
                0 => return Err(Error::malformed(offset, Cause::SectionOutside)),
                read => done = done.saturating_add(read),
            }
        }
        Ok(())
    }

    /// The bytes of a section, after a check that it is inside the file.
    pub(crate) fn section(&self, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let outside = || Error::malformed(offset, Cause::SectionOutside);
        if offset.checked_add(size).is_none_or(|end| end > self.len()) {
            return Err(outside());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| outside())?];
        self.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

/// `$TMPDIR`, else `/var/tmp`: a recording may not fit into a `/tmp` in memory.
fn spool_directory() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}
