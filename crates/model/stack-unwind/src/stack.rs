//! The copy of a stack.

use crate::End;

/// The bytes of a stack from the stack pointer upward.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'s> {
    /// The address of the first byte.
    pub address: u64,
    /// The bytes that were copied.
    pub bytes: &'s [u8],
}

/// Words further up than this are on no stack that the copy is of.
const LARGEST: u64 = 1 << 30;

impl StackCopy<'_> {
    /// The word at an address.
    pub(crate) fn word(&self, address: u64) -> Result<u64, End> {
        let elsewhere = End::OtherMemory { address };
        let offset = address
            .checked_sub(self.address)
            .filter(|offset| *offset < LARGEST)
            .ok_or(elsewhere)?;
        let found =
            usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)?.first_chunk());
        let needed = offset.saturating_add(8);
        found.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(End::BehindCopy { needed })
    }
}
