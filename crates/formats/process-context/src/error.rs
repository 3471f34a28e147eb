//! What may be wrong with a context.

use core::fmt;

/// Why bytes are no protobuf message of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A field extends beyond the end of its message.
    Truncated,
    /// A number has more than 64 bits.
    Overlong,
    /// A field has a wire type that does not exist, or a group, which proto3 does not have.
    WireType(u8),
    /// The number of a field is 0.
    FieldNumber,
    /// A field has another wire type than the message defines.
    Field(u64),
    /// A string is not UTF-8.
    Utf8,
    /// The attributes of code logs have another type than arrays of numbers.
    CodeLogType,
    /// The arrays that describe code logs differ in their lengths.
    CodeLogCount,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("a field extends beyond the end of its message"),
            Self::Overlong => f.write_str("a number has more than 64 bits"),
            Self::WireType(wire) => write!(f, "a field has the unknown wire type {wire}"),
            Self::FieldNumber => f.write_str("the number of a field is 0"),
            Self::Field(number) => {
                write!(f, "field {number} has another type than its message defines")
            }
            Self::Utf8 => f.write_str("a string is not UTF-8"),
            Self::CodeLogType => {
                f.write_str("an attribute of code logs is not an array of numbers")
            }
            Self::CodeLogCount => f.write_str("the attributes of code logs differ in length"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Why no payload was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no memory at the header's or the payload's address.
    Unreadable(u64),
    /// The header does not begin with the signature: this is no context.
    Signature,
    /// The header has a version that is not supported.
    Version(u32),
    /// The payload is empty, or larger than [`LARGEST_PAYLOAD`](crate::LARGEST_PAYLOAD) or than the buffer.
    Size(u32),
    /// The process was changing the context each time: try again later.
    Busy,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(address) => write!(f, "no memory can be read at {address:#x}"),
            Self::Signature => f.write_str("the mapping does not begin with OTEL_CTX"),
            Self::Version(version) => write!(f, "the unknown version {version}"),
            Self::Size(size) => write!(f, "a payload of {size} bytes"),
            Self::Busy => f.write_str("the process was changing it: try again"),
        }
    }
}

impl core::error::Error for ReadError {}
