//! A string whose growth can fail.

use std::fmt::{self, Write};
use std::ops::Deref;

use crate::{Vec, refuse};

/// [`String`], except for its behaviour when an allocation is refused: see the [crate].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Vec<u8>);

impl Text {
    /// Creates an empty string.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// What `format!` returns. Do not pass values whose formatting allocates: see [`OsError`](crate::OsError).
    #[must_use]
    pub fn formatted(arguments: fmt::Arguments<'_>) -> Self {
        let mut new = Self::new();
        if new.write_fmt(arguments).is_err() {
            refuse();
        }
        new
    }

    /// See [`String::from_utf8_lossy`].
    #[must_use]
    pub fn from_utf8_lossy(bytes: &[u8]) -> Self {
        let mut new = Self(Vec::with_capacity(bytes.len()));
        for chunk in bytes.utf8_chunks() {
            new.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                new.push_str("\u{fffd}");
            }
        }
        new
    }

    /// Removes all text and keeps the capacity.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends text.
    pub fn push_str(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // This does not call `refuse`: the result reports the failure to the caller.
        self.0.try_reserve(text.len()).map_err(|_| fmt::Error)?;
        self.push_str(text);
        Ok(())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut new = Self::new();
        new.push_str(text);
        new
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        // The bytes are always concatenated `str`s, so this cannot fail.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn what_is_no_text_is_replaced() {
        for bytes in [&b""[..], b"abc", b"a\xffb\xe2\x82", "\u{1f600}".as_bytes(), b"\xf0\x9f\x98"]
        {
            assert_eq!(&*Text::from_utf8_lossy(bytes), String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn it_is_formatted_as_a_string_is() {
        assert_eq!(&*crate::text!("{}-{:x}.so", "jit", 255), "jit-ff.so");
        assert_eq!(crate::text!("{:>5}|", Text::from("a")), Text::from("    a|"));
    }
}
