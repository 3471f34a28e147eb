//! Strings, as C passes them.
#![allow(unsafe_code)]

use std::ffi::c_char;

use crate::outcome::Failure;
use crate::raw;

/// A string that is read only during the call it is passed to. It should be UTF-8. Other bytes are kept in names and
/// paths, and replaced in names of tiers: no text can make an announcement fail. All zeros is the empty string.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Str {
    /// Its first byte. NULL: the empty string.
    pub data: *const c_char,
    /// Its size in bytes, or JITSCRIBE_NUL_TERMINATED: it ends before its first NUL.
    pub size: usize,
}

impl Str {
    /// # Safety
    /// As for [`raw::text`].
    #[inline]
    pub(crate) unsafe fn bytes<'a>(self) -> Result<&'a [u8], Failure> {
        // SAFETY: guaranteed by the caller.
        unsafe { raw::text(self.data, self.size) }
    }

    /// # Safety
    /// As for [`raw::text`].
    #[inline]
    pub(crate) unsafe fn text<'a>(self) -> Result<LossyText<'a>, Failure> {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { self.bytes() }?;
        // Unlike `from_utf8_lossy`, this checks whole words instead of bytes while the text is ASCII.
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => LossyText::Same(text),
            Err(_) => LossyText::replaced(bytes)?,
        })
    }
}

/// A text as it was passed, or a copy in which bytes that are not UTF-8 are replaced.
#[derive(Debug)]
pub(crate) enum LossyText<'a> {
    Same(&'a str),
    Replaced(fallible::Text),
}

impl LossyText<'_> {
    /// Like `String::from_utf8_lossy`, but fallible.
    #[cold]
    fn replaced(bytes: &[u8]) -> Result<Self, Failure> {
        let text = fallible::attempt(|| {
            let mut text = fallible::Text::new();
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    text.push_str("\u{fffd}");
                }
            }
            text
        });
        text.map(Self::Replaced).map_err(|_| Failure::Memory)
    }
}

impl std::ops::Deref for LossyText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Same(text) => text,
            Self::Replaced(text) => text,
        }
    }
}
