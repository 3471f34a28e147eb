//! Attributes and their values: `KeyValue` and `AnyValue` of `opentelemetry.proto.common.v1`.

use crate::DecodeError;
use crate::wire::Fields;

/// A key with its value.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: Value<'a>,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value, or one of a kind that is not known here.
    None,
    /// A text.
    Text(&'a str),
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A list of values.
    Array(Values<'a>),
    /// A list of keys with values.
    Map(Entries<'a>),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// The values of an array. It ends after the first error. Arrays may contain arrays: a caller that follows them needs a limit.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(Fields<'a>);

/// The entries of a map, with the same limits.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a>(Fields<'a>);

impl<'a> Value<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut value = Self::None;
        for field in Fields::new(message) {
            let (number, wire) = field?;
            // Of the fields of a `oneof`, the last one counts.
            value = match number {
                1 => Self::Text(wire.text(number)?),
                2 => Self::Bool(wire.varint(number)? != 0),
                3 => Self::Int(wire.varint(number)?.cast_signed()),
                4 => Self::Double(f64::from_bits(wire.fixed64(number)?)),
                5 => Self::Array(Values(Fields::new(wire.bytes(number)?))),
                6 => Self::Map(Entries(Fields::new(wire.bytes(number)?))),
                7 => Self::Bytes(wire.bytes(number)?),
                _ => continue,
            };
        }
        Ok(value)
    }
}

impl<'a> Attribute<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut attribute = Self { key: "", value: Value::None };
        for field in Fields::new(message) {
            match field? {
                (1, wire) => attribute.key = wire.text(1)?,
                (2, wire) => attribute.value = Value::parse(wire.bytes(2)?)?,
                _ => {}
            }
        }
        Ok(attribute)
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Value<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_message(&mut self.0, Value::parse)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Attribute<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_message(&mut self.0, Attribute::parse)
    }
}

/// The next field 1, parsed.
fn next_message<'a, T>(
    fields: &mut Fields<'a>,
    parse: impl Fn(&'a [u8]) -> Result<T, DecodeError>,
) -> Option<Result<T, DecodeError>> {
    let found = fields.find_map(|field| match field {
        Ok((1, wire)) => Some(wire.bytes(1).and_then(&parse)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    if matches!(found, Some(Err(_))) {
        *fields = Fields::default();
    }
    found
}
