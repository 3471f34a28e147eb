//! Memory for code.
#![allow(unsafe_code)]

pub struct Memory {
    pub base: *mut u8,
    pub used: usize,
}

pub const SIZE: usize = 1 << 20;

impl Memory {
    pub fn new() -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, protection, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        Self { base: base.cast(), used: 0 }
    }

    /// Puts code into it.
    pub fn place(&mut self, code: &[u8]) -> &'static [u8] {
        let at = self.used;
        self.used = (at + code.len()).next_multiple_of(16);
        assert!(self.used <= SIZE);
        // SAFETY: within the memory, which is never freed, and where nothing was placed before.
        unsafe {
            let to = self.base.add(at);
            std::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len());
            std::slice::from_raw_parts(to, code.len())
        }
    }
}
