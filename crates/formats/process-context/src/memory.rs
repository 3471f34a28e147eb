//! Reads a context that its process may change at the same time.

use crate::{Header, LARGEST_PAYLOAD, ReadError};

/// How often a context is read that changes each time.
const ATTEMPTS: u32 = 8;

/// The memory of a process.
pub trait Memory {
    /// Fills `buffer` from `address` on. False if not all of it can be read.
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> bool;
}

/// A payload that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published<'b> {
    /// The value of [`Header::published_at`], which differs after each change.
    pub at: u64,
    /// The payload: see [`Context`](crate::Context).
    pub payload: &'b [u8],
}

/// Reads the context whose header is at `address`. The buffer takes the payload; [`LARGEST_PAYLOAD`] bytes are enough.
///
/// The payload is what the process published at one time, never a mixture: this follows the reading protocol of the OTEP.
///
/// # Errors
/// [`ReadError`].
pub fn read<'b>(
    memory: &impl Memory,
    address: u64,
    buffer: &'b mut [u8],
) -> Result<Published<'b>, ReadError> {
    let time_at = address.checked_add(Header::PUBLISHED_AT as u64);
    let time_at = time_at.ok_or(ReadError::Unreadable(address))?;
    let published_at = || {
        let mut word = [0; 8];
        let is_read = memory.read_at(time_at, &mut word);
        is_read.then(|| u64::from_ne_bytes(word)).ok_or(ReadError::Unreadable(time_at))
    };
    for _ in 0..ATTEMPTS {
        let before = published_at()?;
        let mut header = [0; Header::SIZE];
        if !memory.read_at(address, &mut header) {
            return Err(ReadError::Unreadable(address));
        }
        // Before the first publication, the signature and the version may be missing, too.
        if before == 0 {
            continue;
        }
        let header = Header::parse(&header)?;
        let result = payload(memory, &header, buffer);
        // What went wrong counts only if the header was complete.
        if published_at()? == before {
            let size = result?;
            let payload = buffer.get(..size).unwrap_or_default();
            return Ok(Published { at: before, payload });
        }
    }
    Err(ReadError::Busy)
}

/// Reads the payload, and returns its size.
fn payload(memory: &impl Memory, header: &Header, buffer: &mut [u8]) -> Result<usize, ReadError> {
    let too_large = ReadError::Size(header.payload_size);
    let size = usize::try_from(header.payload_size).map_err(|_| too_large)?;
    let space = buffer.get_mut(..size).filter(|_| (1..=LARGEST_PAYLOAD).contains(&size));
    let is_read = memory.read_at(header.payload, space.ok_or(too_large)?);
    is_read.then_some(size).ok_or(ReadError::Unreadable(header.payload))
}
