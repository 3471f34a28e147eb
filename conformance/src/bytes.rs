//! Writes fields and records in either byte order, including wrong ones.

pub mod id {
    pub const LOAD: u32 = 0;
    pub const MOVE: u32 = 1;
    pub const DEBUG_INFO: u32 = 2;
    pub const CLOSE: u32 = 3;
    pub const UNWINDING_INFO: u32 = 4;
    /// `SAMPLY_JIT_CODE_DEBUG_INFO2`.
    pub const SOURCE_POSITIONS: u32 = 0x3150_4d54;
}

/// A file, or part of one.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    pub out: Vec<u8>,
    pub is_big: bool,
}

impl Bytes {
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    /// Writes a text and a NUL.
    pub fn text(&mut self, text: &[u8]) -> &mut Self {
        self.raw(text).u8(0)
    }

    /// Writes zeros up to a multiple of `unit` bytes from `start`.
    pub fn pad(&mut self, start: usize, unit: usize) -> &mut Self {
        let size = (self.out.len() - start).next_multiple_of(unit);
        self.out.resize(start + size, 0);
        self
    }

    pub fn set_u32(&mut self, at: usize, value: u32) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.out[at..at + 4].copy_from_slice(&bytes);
        self
    }

    pub fn set_u64(&mut self, at: usize, value: u64) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.out[at..at + 8].copy_from_slice(&bytes);
        self
    }

    /// Writes a record whose size is what `body` writes.
    pub fn record(
        &mut self,
        id: u32,
        time: u64,
        body: impl FnOnce(&mut Self) -> &mut Self,
    ) -> &mut Self {
        let start = self.out.len();
        body(self.u32(id).u32(0).u64(time));
        let size = u32::try_from(self.out.len() - start).expect("a small record");
        self.set_u32(start + 4, size)
    }
}
