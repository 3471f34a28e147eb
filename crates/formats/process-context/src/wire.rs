//! The wire format of protobuf.

use crate::DecodeError;

/// The value of a field, as it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
    /// Wire type 5. No message here has one.
    Fixed32,
}

impl<'a> Wire<'a> {
    /// The bytes of field `number`, which is a string or a message.
    pub(crate) fn bytes(self, number: u64) -> Result<&'a [u8], DecodeError> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(DecodeError::Field(number)) }
    }

    /// The same as text.
    pub(crate) fn text(self, number: u64) -> Result<&'a str, DecodeError> {
        core::str::from_utf8(self.bytes(number)?).map_err(|_| DecodeError::Utf8)
    }

    /// The number of field `number`.
    pub(crate) fn varint(self, number: u64) -> Result<u64, DecodeError> {
        if let Self::Varint(value) = self { Ok(value) } else { Err(DecodeError::Field(number)) }
    }

    /// The 64 bits of field `number`.
    pub(crate) fn fixed64(self, number: u64) -> Result<u64, DecodeError> {
        if let Self::Fixed64(value) = self { Ok(value) } else { Err(DecodeError::Field(number)) }
    }
}

/// The fields of a message, in the order of its bytes. It ends after the first error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], DecodeError> {
        let count = usize::try_from(count).map_err(|_| DecodeError::Truncated)?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(DecodeError::Truncated)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit.
            let shifted = bits.checked_shl(shift).unwrap_or(0);
            if shifted.checked_shr(shift) != Some(bits) {
                return Err(DecodeError::Overlong);
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Overlong)
    }

    fn field(&mut self) -> Result<(u64, Wire<'a>), DecodeError> {
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 {
            return Err(DecodeError::FieldNumber);
        }
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Wire::Fixed64(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            }
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            // At most 7.
            wire => return Err(DecodeError::WireType(u8::try_from(wire).unwrap_or_default())),
        };
        Ok((number, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}
