//! Announcing code by a pointer.
#![allow(unsafe_code)]

use jitscribe::{LoadedCode, Scribe};

use crate::Announcement;

impl Announcement<'_> {
    /// Like [`Self::load`], for code at a pointer, such as `cranelift-jit` returns for a finalized function.
    ///
    /// # Safety
    /// This very function is at `code`, is readable, and is not written to during the call.
    pub unsafe fn load_finalized(&self, scribe: Scribe, code: *const u8) -> LoadedCode {
        // SAFETY: the caller guarantees that `size` bytes are readable there and do not change while the
        // slice lives, which is during this call: the scribe only copies them or takes their address.
        let memory = unsafe { std::slice::from_raw_parts(code, self.size() as usize) };
        self.load(scribe, memory)
    }
}
