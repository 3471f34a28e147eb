//! Splits a line into fields.

use crate::Cause;

/// Takes fields off the front of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { rest: Some(line) }
    }

    /// The next field; `None` behind the last one.
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let comma = rest.iter().position(|byte| *byte == b',');
        let Some((field, behind)) = comma.and_then(|at| rest.split_at_checked(at)) else {
            self.rest = None;
            return Some(rest);
        };
        self.rest = behind.get(1..);
        Some(field)
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a [u8], Cause> {
        self.next().ok_or(Cause::Field { field })
    }

    pub(crate) fn decimal(&mut self, field: &'static str) -> Result<u64, Cause> {
        self.next().and_then(decimal).ok_or(Cause::Field { field })
    }

    /// An address, with `0x` before it.
    pub(crate) fn address(&mut self, field: &'static str) -> Result<u64, Cause> {
        self.next().and_then(address).ok_or(Cause::Field { field })
    }
}

pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    number(digits, 10)
}

pub(crate) fn address(field: &[u8]) -> Option<u64> {
    number(field.strip_prefix(b"0x")?, 16)
}

/// A number without a sign.
pub(crate) fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let first = digits.first()?;
    if *first == b'+' {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}
