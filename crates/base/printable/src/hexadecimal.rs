//! Bytes as digits.

use core::fmt::{self, Display};

/// Displays bytes as two hexadecimal digits each, as build-ids are written.
#[derive(Clone, Copy, Debug)]
pub struct Hexadecimal<'a>(pub &'a [u8]);

impl Display for Hexadecimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
