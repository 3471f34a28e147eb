//! What the events say about themselves, as TraceLogging has it: the size of all in two bytes, a tag, the name with NUL, and for each field its
//! name with NUL and the type of its value (`TlgIn…` of TraceLoggingProvider.h).
#![allow(clippy::indexing_slicing, reason = "all of it is computed when it is compiled")]

use crate::api::{EventDescriptor, Guid};

/// V8's provider, and JScript's: {57277741-3638-4a4b-bdba-0ac6e45da56c}.
pub(crate) const PROVIDER: Guid = Guid {
    data1: 0x5727_7741,
    data2: 0x3638,
    data3: 0x4a4b,
    data4: [0xbd, 0xba, 0x0a, 0xc6, 0xe4, 0x5d, 0xa5, 0x6c],
};

/// The level of the events, `TRACE_LEVEL_INFORMATION`.
pub(crate) const LEVEL: u8 = 4;
/// The keyword of the events.
pub(crate) const KEYWORD: u64 = 1;

/// The provider's name, without a tag.
pub(crate) static TRAITS: [u8; 8] = *b"\x08\0V8.js\0";

pub(crate) const SOURCE_LOAD: EventDescriptor = descriptor(41);
pub(crate) const METHOD_LOAD: EventDescriptor = descriptor(9);

const fn descriptor(id: u16) -> EventDescriptor {
    // The channel of events without a manifest, and the operation `start`.
    EventDescriptor {
        id,
        version: 0,
        channel: 11,
        level: LEVEL,
        opcode: 1,
        task: 0,
        keyword: KEYWORD,
    }
}

/// Joins the parts with the size of all before them.
macro_rules! metadata {
    ($name:ident = $($part:expr),+ $(,)?) => {
        pub(crate) static $name: [u8; { 2 $(+ $part.len())+ }] = {
            let parts: &[&[u8]] = &[$($part),+];
            let mut bytes = [0; { 2 $(+ $part.len())+ }];
            [bytes[0], bytes[1]] = (bytes.len() as u16).to_le_bytes();
            let (mut at, mut part) = (2, 0);
            while part < parts.len() {
                let mut byte = 0;
                while byte < parts[part].len() {
                    bytes[at] = parts[part][byte];
                    (at, byte) = (at + 1, byte + 1);
                }
                part += 1;
            }
            bytes
        };
    };
}

/// A pointer is a number in hexadecimal of its size.
#[cfg(target_pointer_width = "64")]
macro_rules! pointer {
    ($name:literal) => {
        concat!($name, "\0\x15").as_bytes()
    };
}
#[cfg(not(target_pointer_width = "64"))]
macro_rules! pointer {
    ($name:literal) => {
        concat!($name, "\0\x14").as_bytes()
    };
}

metadata!(
    SOURCE_LOAD_FIELDS = b"\0SourceLoad\0",
    b"SourceID\0\x0a",
    pointer!("ScriptContextID"),
    b"SourceFlags\0\x08",
    b"Url\0\x01",
);
metadata!(
    METHOD_LOAD_FIELDS = b"\0MethodLoad\0",
    pointer!("ScriptContextID"),
    pointer!("MethodStartAddress"),
    b"MethodSize\0\x0a",
    b"MethodID\0\x08",
    b"MethodFlags\0\x06",
    b"MethodAddressRangeID\0\x06",
    b"SourceID\0\x0a",
    b"Line\0\x08",
    b"Column\0\x08",
    b"MethodName\0\x01",
);
