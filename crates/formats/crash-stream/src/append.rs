//! Adds streams to a finished minidump.

use crate::error::Error;
use crate::layout::STREAM_TYPE;
use crate::minidump::{DIRECTORY, STREAM_COUNT, directory, find};

/// A minidump to which something is added at its end.
pub(crate) struct Extended {
    pub(crate) bytes: Vec<u8>,
}

impl Extended {
    /// A copy of the minidump, with space for `more` bytes.
    pub(crate) fn new(minidump: &[u8], more: usize) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let size = minidump.len().checked_add(more).ok_or(Error::TooLarge)?;
        bytes.try_reserve_exact(size).map_err(|_| Error::TooLarge)?;
        bytes.extend_from_slice(minidump);
        Ok(Self { bytes })
    }

    /// Adds bytes at a multiple of 8, and returns their offset and size.
    pub(crate) fn add(&mut self, more: &[u8]) -> Result<[u32; 2], Error> {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = u32::try_from(self.bytes.len()).map_err(|_| Error::TooLarge)?;
        let size = u32::try_from(more.len()).map_err(|_| Error::TooLarge)?;
        at.checked_add(size).ok_or(Error::TooLarge)?;
        self.bytes.extend_from_slice(more);
        Ok([at, size])
    }

    pub(crate) fn set(&mut self, at: usize, value: u32) {
        let place = self.bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        if let Some(place) = place {
            *place = value.to_ne_bytes();
        }
    }

    /// Adds a copy of the directory, with one more entry.
    pub(crate) fn add_entry(
        &mut self,
        stream_type: u32,
        [at, size]: [u32; 2],
    ) -> Result<(), Error> {
        let mut entries = directory(&self.bytes)?.to_vec();
        for field in [stream_type, size, at] {
            entries.extend_from_slice(&field.to_ne_bytes());
        }
        let count = u32::try_from(entries.len() / crate::minidump::ENTRY_SIZE);
        let [place, _] = self.add(&entries)?;
        // The header comes last: until then, the minidump is what it was.
        self.set(STREAM_COUNT, count.map_err(|_| Error::TooLarge)?);
        self.set(DIRECTORY, place);
        Ok(())
    }
}

/// Adds `stream`, which describes code, to a finished minidump. Nothing in the minidump is moved or changed, except that its header
/// refers to a new directory at its end.
///
/// # Errors
/// If this is not a minidump, or if it has such a stream already.
pub fn append(minidump: &[u8], stream: &[u8]) -> Result<Vec<u8>, Error> {
    if find(minidump, STREAM_TYPE)?.is_some() {
        return Err(Error::HasStream);
    }
    let entries = directory(minidump)?.len();
    let mut extended =
        Extended::new(minidump, stream.len().saturating_add(entries).saturating_add(64))?;
    let location = extended.add(stream)?;
    extended.add_entry(STREAM_TYPE, location)?;
    Ok(extended.bytes)
}
