//! Bytes of an `.eh_frame` section, read from the front.
#![cfg_attr(not(test), deny(clippy::as_conversions))]

use super::Cause;
use crate::target::{Endian, Target};

/// The remaining bytes of the section or of one entry, and their address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Address of the first remaining byte, modulo the address size.
    address: u64,
    target: Target,
}

impl<'a> Cursor<'a> {
    /// Reads `bytes` as if they were at `address`.
    pub(super) fn new(target: Target, bytes: &'a [u8], address: u64) -> Self {
        Cursor { bytes, address, target }
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Everything that remains.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes read since `before`, an earlier state of this cursor.
    pub(super) fn since(&self, before: &Cursor<'a>) -> &'a [u8] {
        let read = before.bytes.len().saturating_sub(self.bytes.len());
        before.bytes.get(..read).unwrap_or_default()
    }

    /// Splits off the next `len` bytes as a separate cursor.
    pub(super) fn split(&mut self, len: u64) -> Result<Cursor<'a>, Cause> {
        let at = usize::try_from(len).map_err(|_| Cause::Malformed)?;
        let (head, tail) = self.bytes.split_at_checked(at).ok_or(Cause::Malformed)?;
        let head = Cursor { bytes: head, ..*self };
        self.bytes = tail;
        self.address = self.address.wrapping_add(len);
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Cause> {
        let (head, tail) = self.bytes.split_first_chunk().ok_or(Cause::Malformed)?;
        self.bytes = tail;
        for _ in head {
            self.address = self.address.wrapping_add(1);
        }
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Cause> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Cause> {
        let bytes = self.array()?;
        Ok(match self.target.endian {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        })
    }

    pub(super) fn u32(&mut self) -> Result<u32, Cause> {
        let bytes = self.array()?;
        Ok(match self.target.endian {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        })
    }

    pub(super) fn u64(&mut self) -> Result<u64, Cause> {
        let bytes = self.array()?;
        Ok(match self.target.endian {
            Endian::Little => u64::from_le_bytes(bytes),
            Endian::Big => u64::from_be_bytes(bytes),
        })
    }

    /// An address of the target's size.
    pub(super) fn word(&mut self) -> Result<u64, Cause> {
        if self.target.is_64 { self.u64() } else { self.u32().map(u64::from) }
    }

    /// An unsigned LEB128 number; malformed if it does not fit into 64 bits.
    pub(super) fn uleb(&mut self) -> Result<u64, Cause> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            let shifted = part.checked_shl(shift).unwrap_or(0);
            if shifted.checked_shr(shift).unwrap_or(0) != part {
                return Err(Cause::Malformed);
            }
            value |= shifted;
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    /// A signed LEB128 number of up to nine bytes, which is enough for any 63-bit number.
    pub(super) fn sleb(&mut self) -> Result<i64, Cause> {
        let mut value: i64 = 0;
        let mut shift: u32 = 0;
        loop {
            let byte = self.u8()?;
            let part = i64::from(byte & 0x7f);
            value |= part.checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                if let Some(sign) = (-1_i64).checked_shl(shift)
                    && byte & 0x40 != 0
                {
                    value |= sign;
                }
                return if shift <= 63 { Ok(value) } else { Err(Cause::Malformed) };
            }
        }
    }

    /// Bytes up to a NUL, which is consumed too.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Cause> {
        let len = self.bytes.iter().position(|&byte| byte == 0).ok_or(Cause::Malformed)?;
        let len = u64::try_from(len).map_err(|_| Cause::Malformed)?;
        let string = self.split(len)?;
        self.u8()?;
        Ok(string.bytes)
    }
}
