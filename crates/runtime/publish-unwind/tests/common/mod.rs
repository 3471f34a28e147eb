//! Code without a frame pointer, and its unwind info.
#![allow(dead_code, reason = "each test uses some of it")]

pub mod others;

use std::ptr;
use std::sync::OnceLock;

use publish_unwind::{Code, Row, Unwind, Unwinders};

pub type Callback = extern "C-unwind" fn(usize, usize);
pub type Caller = extern "C-unwind" fn(Callback, usize);

/// Calls its first argument with both arguments, in a frame without a frame pointer in which rbp is
/// 0.
pub const CALLER: [u8; 17] = [
    0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x31, 0xed, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0x5b,
    0xc3,
];
pub const ROOM: usize = 32;
pub const ROWS: [Row<'static>; 6] = {
    [
        row(1, 16, &[(3, -16)]),
        row(2, 24, &[(3, -16), (6, -24)]),
        row(6, 32, &[(3, -16), (6, -24)]),
        row(14, 24, &[(3, -16), (6, -24)]),
        row(15, 16, &[(3, -16)]),
        row(16, 8, &[]),
    ]
};

pub const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
    Row::new(offset, 7, cfa_offset).saved(saved)
}

pub fn unwinders() -> &'static Unwinders {
    static FOUND: OnceLock<Unwinders> = OnceLock::new();
    FOUND.get_or_init(|| {
        let unwinders = Unwinders::find().expect("an unwinder");
        if let Ok(kind) = std::env::var(others::EXPECTED) {
            assert_eq!(format!("{:?}", unwinders.kind()), kind);
        }
        unwinders
    })
}

/// Pages full of callers, which are announced one by one.
pub struct Page {
    base: *mut libc::c_void,
    size: usize,
}

impl Page {
    pub fn new(count: usize) -> Self {
        let size = (count * ROOM).next_multiple_of(4096);
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let base = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let page = Self { base, size };
        (0..count).for_each(|number| page.write(number, &CALLER));
        page
    }

    /// Puts code there, which is never run.
    pub fn write(&self, number: usize, code: &[u8]) {
        assert!(code.len() <= ROOM);
        // SAFETY: within the memory from above.
        unsafe {
            let to = self.base.cast::<u8>().add(number * ROOM);
            ptr::copy_nonoverlapping(code.as_ptr(), to, code.len());
        }
    }

    pub fn address(&self, number: usize) -> u64 {
        (self.base.addr() + number * ROOM) as u64
    }

    pub fn load(&self, number: usize) -> Caller {
        self.load_as(number, CALLER.len(), &ROWS)
    }

    pub fn load_as(&self, number: usize, size: usize, rows: &[Row<'_>]) -> Caller {
        let (start, size) = (self.address(number), size as u64);
        unwinders().load(&Code::at(start, size).unwind(Unwind::Rows(rows)));
        self.caller(number)
    }

    pub fn unload(&self, number: usize) {
        unwinders().unload(self.address(number), ROOM as u64);
    }

    pub fn caller(&self, number: usize) -> Caller {
        // SAFETY: the code above, which has this type.
        unsafe { std::mem::transmute::<*mut u8, Caller>(self.base.cast::<u8>().add(number * ROOM)) }
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.base.addr() as u64..(self.base.addr() + self.size) as u64).contains(&address)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::munmap(self.base, self.size) };
    }
}

// SAFETY: memory that any thread may run.
unsafe impl Sync for Page {}
