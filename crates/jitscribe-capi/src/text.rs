//! Strings as C passes them.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::c_char;

use crate::outcome::Failure;
use crate::raw;

/// A string that is only read during the call it is passed to. UTF-8 is expected; other bytes are replaced, so that
/// nothing that a program can be called breaks its announcement. All zeros is the empty string.
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
    /// What [`raw::text`] wants.
    #[inline]
    pub(crate) unsafe fn bytes<'a>(self) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller's promise.
        unsafe { raw::text(self.data, self.size) }
    }

    /// # Safety
    /// What [`raw::text`] wants.
    #[inline]
    pub(crate) unsafe fn text<'a>(self) -> Result<Cow<'a, str>, Failure> {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.bytes() }?;
        // Unlike `from_utf8_lossy` this looks at words, not bytes, as long as they are ASCII.
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        })
    }
}
