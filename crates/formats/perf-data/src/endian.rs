//! A cursor that reads fields in a byte order.

pub use jit_code::Endian;

/// Reads fields one after another; `None` once the bytes run out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    endian: Endian,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self { rest: bytes, endian }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|bytes| self.endian.u16(bytes))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| self.endian.u32(bytes))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| self.endian.u64(bytes))
    }

    /// Two 32-bit fields, low address first, as in `{ pid, tid }`.
    pub(crate) fn pair(&mut self) -> Option<(u32, u32)> {
        Some((self.u32()?, self.u32()?))
    }

    pub(crate) fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(head)
    }

    /// The text up to the first NUL in the remaining bytes (all of them if there is no NUL).
    pub(crate) fn text(&self) -> &'a [u8] {
        until_nul(self.rest)
    }
}

/// Bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
