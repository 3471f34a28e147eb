//! The codes in a stream.

use code_index::{AddressSpaceId, CodeIndex, Description, JITDUMP};

/// All codes of a stream. Those that were unloaded count too: a stack may still refer to them.
#[derive(Debug)]
pub(crate) struct KnownCodes {
    dump: Vec<u8>,
    index: CodeIndex,
    codes: usize,
}

/// A code, and what is said of it.
#[derive(Debug)]
pub(crate) struct KnownCode<'c> {
    /// Address of its first byte.
    pub(crate) start: u64,
    pub(crate) description: Description<'c>,
}

impl KnownCodes {
    /// The codes of a jitdump, as far as it is not damaged.
    pub(crate) fn new(dump: &[u8]) -> Self {
        let mut index = CodeIndex::new().keeping_unloaded();
        let codes = index.add(&JITDUMP, dump).map_or(0, |added| added.codes);
        Self { dump: dump.to_vec(), index, codes }
    }

    /// The last code that was at `address`.
    pub(crate) fn at(&self, address: u64) -> Option<KnownCode<'_>> {
        let found = self.index.last(AddressSpaceId::ONLY, address)?;
        let description = self.index.describe(&found, &self.dump)?;
        Some(KnownCode { start: found.start, description })
    }

    /// Number of codes.
    pub(crate) fn len(&self) -> usize {
        self.codes
    }
}
