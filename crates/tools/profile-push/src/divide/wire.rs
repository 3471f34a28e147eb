//! The encoding of protocol buffers: fields of a message, and numbers in it.

use super::error::{DivideError, malformed};

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub number: u32,
    pub value: Value<'a>,
    /// The whole field, as it is encoded.
    pub raw: &'a [u8],
}

impl<'a> Field<'a> {
    /// The content of a field that is a message, a text, or a list of numbers.
    pub fn bytes(&self) -> Result<&'a [u8], DivideError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => malformed("a number is in the place of a message"),
        }
    }
}

/// The fields of a message, in their order. Nothing follows an error.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

const CUT: &str = "it ends within a field";

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], DivideError> {
    let split = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let Some((taken, behind)) = split else { return malformed(CUT) };
    *rest = behind;
    Ok(taken)
}

/// Takes a number from the beginning of `rest`.
pub(super) fn number(rest: &mut &[u8]) -> Result<u64, DivideError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let Some((&byte, behind)) = rest.split_first() else { return malformed(CUT) };
        *rest = behind;
        // The last byte has one bit; others of it are lost, as in every reader.
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    malformed("a number has more than ten bytes")
}

/// The number in each eight bytes.
pub(super) fn fixed64s(packed: &[u8]) -> Result<impl Iterator<Item = u64> + '_, DivideError> {
    let (numbers, rest) = packed.as_chunks::<8>();
    if !rest.is_empty() {
        return malformed(CUT);
    }
    Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)))
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<Field<'a>, DivideError> {
        let start = self.rest;
        let rest = &mut self.rest;
        let key = number(rest)?;
        let Ok(field) = u32::try_from(key >> 3) else { return malformed("no field number") };
        let value = match key & 7 {
            0 => Value::Number(number(rest)?),
            1 => {
                let bytes = take(rest, 8)?.first_chunk().copied().unwrap_or_default();
                Value::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let length = number(rest)?;
                Value::Bytes(take(rest, length)?)
            }
            5 => take(rest, 4).map(|_| Value::Fixed32)?,
            _ => return malformed("no kind of field"),
        };
        let length = start.len().saturating_sub(rest.len());
        let raw = start.get(..length).unwrap_or_default();
        Ok(Field { number: field, value, raw })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DivideError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Appends a number.
pub(super) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field that is a number.
pub(super) fn put_number_field(out: &mut Vec<u8>, field: u32, value: u64) {
    put_number(out, u64::from(field) << 3);
    put_number(out, value);
}

/// Appends a field that is a message, a text, or a list of numbers.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    put_number(out, u64::from(field) << 3 | 2);
    put_number(out, value.len() as u64);
    out.extend_from_slice(value);
}
