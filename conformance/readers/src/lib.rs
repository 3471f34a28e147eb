//! What the readers behind the conformance runner share.

#![forbid(unsafe_code)]

mod table;

pub use jitdump_conformance::FIELDS;
use serde_json::{Value, json};
pub use table::{BEGIN, END, table};

/// Bytes as JSON: a text if they are UTF-8, else in hexadecimal.
#[must_use]
pub fn bytes(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| json!({ "hex": hex(bytes) }), |text| json!(text))
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An address as JSON.
#[must_use]
pub fn hexadecimal(address: u64) -> String {
    format!("{address:#x}")
}
