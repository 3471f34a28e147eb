//! FDEs in memory that are registered with an unwinder.
#![allow(unsafe_code)]

use fallible::{Refused, Vec};

use crate::entries::{Entry, Frames};
use crate::functions::Functions;

/// An FDE, behind its CIE and before a word of zeros. It does not move: a walk that has found it continues to read it
/// after the unwinder has released its lock.
#[derive(Debug)]
pub(crate) struct Description {
    /// Words, because unwinders read fields of 8 bytes.
    words: Vec<u64>,
    /// Size of the CIE.
    common: usize,
}

impl Description {
    /// `None` if it is too short to be one.
    pub(crate) fn new(entry: &Entry) -> Result<Option<Self>, Refused> {
        let Some(frames) = entry.frames() else { return Ok(None) };
        let common = frames.common;
        let (chunks, _) = entry.bytes.as_chunks::<8>();
        let mut words = Vec::new();
        words.try_reserve_exact(chunks.len().saturating_add(1))?;
        words.extend(chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk)));
        words.push(0);
        Ok(Some(Self { words, common }))
    }

    /// The same at another place.
    pub(crate) fn copy(&self) -> Result<Self, Refused> {
        let mut words = Vec::new();
        words.try_reserve_exact(self.words.len())?;
        words.extend_from_slice(&self.words);
        Ok(Self { words, common: self.common })
    }

    /// The code from `start` to `end`, and its CFI.
    pub(crate) fn frames(&self, start: u64, end: u64) -> Frames<'_> {
        let size = self.words.len().saturating_sub(1).saturating_mul(8);
        // SAFETY: the bytes of all words except the zeros.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), size) };
        Frames { start, end, bytes, common: self.common }
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        self.words.as_ptr().cast::<u8>().wrapping_add(self.common)
    }
}

/// An FDE that is registered by itself; dropping it deregisters it.
#[derive(Debug)]
pub(crate) struct Single {
    functions: Functions,
    description: Description,
}

impl Single {
    pub(crate) fn register(functions: Functions, description: Description) -> Self {
        // SAFETY: one FDE with zeros behind it, which stays until this value is dropped.
        unsafe { functions.register(description.pointer()) };
        Self { functions, description }
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        // SAFETY: it was registered when this value was created.
        unsafe { self.functions.deregister(self.description.pointer()) };
    }
}
