//! Byte order, and reading fields in it.

/// The byte order of a dump, told by its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The order of the machine this code runs on.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    pub(crate) fn put_u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn put_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn put_u64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// Takes fields off the front of a slice; `None` when it has no more.
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

    /// The bytes up to the next NUL, which is taken too but not handed out.
    pub(crate) fn c_str(&mut self) -> Option<&'a [u8]> {
        let (text, behind) = self.rest.split_at_checked(first_nul(self.rest)?)?;
        self.rest = behind.get(1..)?;
        Some(text)
    }
}

/// Where the first NUL is. Names are short, so this looks at eight bytes at a time and no more.
fn first_nul(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::MAX / 0xff;
    const HIGH: u64 = LOW << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that is set stands for the first byte that is 0.
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

/// A file offset as an index. What does not fit becomes an index that no slice has.
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
