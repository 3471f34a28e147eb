//! Limits on reading.

/// Limits on how much of a log is read. A log may claim content that does not exist, and its process may keep
/// changing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum size of the snapshot in bytes.
    pub held: u64,
    /// Maximum number of bytes read for it. A chunk that changes while it is read is read again.
    pub read: u64,
    /// Maximum number of codes in it.
    pub codes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { held: 1 << 30, read: 8 << 30, codes: 1 << 24 }
    }
}
