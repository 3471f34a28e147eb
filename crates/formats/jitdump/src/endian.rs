//! Reading fields in a byte order.

pub use jit_code::Endian;

/// Takes fields off the front of a slice; `None` when it is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) endian: Endian,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(rest: &'a [u8], endian: Endian) -> Self {
        Self { rest, endian }
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(self.endian.u16(*first))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(self.endian.u32(*first))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(self.endian.u64(*first))
    }

    pub(crate) fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(to_usize(len))?;
        self.rest = rest;
        Some(first)
    }

    /// The bytes up to the next NUL. The NUL is consumed but not returned.
    pub(crate) fn c_str(&mut self) -> Option<&'a [u8]> {
        let (text, behind) = self.rest.split_at_checked(first_nul(self.rest)?)?;
        self.rest = behind.get(1..)?;
        Some(text)
    }
}

/// Position of the first NUL. Names are short, so this examines eight bytes at a time and no more.
fn first_nul(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::MAX / 0xff;
    const HIGH: u64 = LOW << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest set bit marks the first byte that is 0.
        let nuls = word.wrapping_sub(LOW) & !word & HIGH;
        if nuls != 0 {
            return number
                .checked_mul(8)?
                .checked_add(to_usize(u64::from(nuls.trailing_zeros() / 8)));
        }
    }
    let behind = bytes.len().checked_sub(rest.len())?;
    rest.iter().position(|byte| *byte == 0)?.checked_add(behind)
}

/// A length in memory as a file offset; lossless where `usize` has at most 64 bits.
pub(crate) fn to_u64(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A file offset as an index. An offset that does not fit becomes an index that no slice has.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_nul_is_found(
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0x80), any::<u8>()], 0..40),
            without in 0usize..40,
        ) {
            let mut bytes = bytes;
            for byte in bytes.iter_mut().take(without) {
                *byte = (*byte).max(1);
            }
            prop_assert_eq!(first_nul(&bytes), bytes.iter().position(|byte| *byte == 0));
        }
    }
}
