//! Code of which only a pointer is known.
#![allow(unsafe_code)]

use jitscribe::{LoadedCode, Scribe};

use crate::Announcement;

impl Announcement<'_> {
    /// [`Self::load`] for code of which a pointer is known, as `cranelift-jit` gives one for a function that
    /// was finalized.
    ///
    /// # Safety
    /// At `code` lies this very function, readable, and nobody writes there during the call.
    pub unsafe fn load_finalized(&self, scribe: Scribe, code: *const u8) -> LoadedCode {
        // SAFETY: By the caller's promise `size` bytes can be read there and do not change while the
        // slice lives, which is for this call: the scribe copies them or takes their address only.
        let memory = unsafe { std::slice::from_raw_parts(code, self.size() as usize) };
        self.load(scribe, memory)
    }
}
