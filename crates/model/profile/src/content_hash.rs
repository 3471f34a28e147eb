//! Hashes of the content of source files.

/// The first 16 bytes of the BLAKE3 hash of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 16]);

impl ContentHash {
    /// Of this content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        let hash = blake3::hash(content);
        Self(hash.as_bytes().first_chunk().copied().unwrap_or_default())
    }
}
