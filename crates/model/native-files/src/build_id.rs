//! How build-ids are written.

use std::fmt::Write as _;

/// Bytes as hexadecimal digits, as build-ids are written.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
