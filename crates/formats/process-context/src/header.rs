//! The header of a context, at the beginning of its mapping.

use crate::ReadError;

/// The largest payload that readers accept, in bytes: the limit of the OpenTelemetry eBPF profiler.
pub const LARGEST_PAYLOAD: usize = 1 << 16;

/// The header, except its signature and its version. All numbers have the byte order of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The size of the payload, in bytes.
    pub payload_size: u32,
    /// The time of the last change, in nanoseconds of `CLOCK_BOOTTIME`, different after each change; 0 while the context is being
    /// changed.
    pub published_at: u64,
    /// The address of the payload.
    pub payload: u64,
}

impl Header {
    /// The size of a header in bytes.
    pub const SIZE: usize = 32;
    /// Its first bytes.
    pub const SIGNATURE: [u8; 8] = *b"OTEL_CTX";
    /// The version of the format.
    pub const VERSION: u32 = 2;

    /// The offset of the signature.
    pub const SIGNATURE_AT: usize = 0;
    /// The offset of the version, a `u32`.
    pub const VERSION_AT: usize = 8;
    /// The offset of [`Self::payload_size`].
    pub const PAYLOAD_SIZE_AT: usize = 12;
    /// The offset of [`Self::published_at`].
    pub const PUBLISHED_AT: usize = 16;
    /// The offset of [`Self::payload`].
    pub const PAYLOAD_AT: usize = 24;

    /// Parses a header in the byte order of this machine.
    ///
    /// # Errors
    /// [`ReadError::Signature`], [`ReadError::Version`].
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Result<Self, ReadError> {
        let [first, second, published_at, payload] = words(bytes);
        if first != u64::from_ne_bytes(Self::SIGNATURE) {
            return Err(ReadError::Signature);
        }
        let [version, payload_size] = halves(second);
        if version != Self::VERSION {
            return Err(ReadError::Version(version));
        }
        Ok(Self { payload_size, published_at, payload })
    }
}

/// The four words of a header.
fn words(bytes: &[u8; Header::SIZE]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}

/// The halves of a word, in the order in which they are in memory.
fn halves(word: u64) -> [u32; 2] {
    let mut halves = [0; 2];
    for (half, bytes) in halves.iter_mut().zip(word.to_ne_bytes().as_chunks().0) {
        *half = u32::from_ne_bytes(*bytes);
    }
    halves
}
