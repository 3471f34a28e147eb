//! Code without a frame pointer, and its unwind info.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(unsafe_code)]

/// `CALLER` calls its first argument with both arguments, in a frame without a frame pointer, which `ROWS` describes.
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod machine;
pub mod others;

pub use machine::*;

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use publish_unwind::{Code, Row, Unwind, Unwinders};

pub type Callback = extern "C-unwind" fn(usize, usize);
pub type Caller = extern "C-unwind" fn(Callback, usize);

pub const fn row_of(
    offset: u32,
    register: u16,
    cfa_offset: i32,
    saved: &'static [(u16, i32)],
) -> Row<'static> {
    Row::new(offset, register, cfa_offset).saved(saved)
}

/// Whether the callers of this process do not sign their return addresses.
static IS_PLAIN: AtomicBool = AtomicBool::new(false);

/// Signs no return addresses from now on.
pub fn sign_nothing() {
    IS_PLAIN.store(true, Relaxed);
}

/// The callers of this process, and their frames.
pub fn caller() -> (&'static [u8; CALLER.len()], &'static [Row<'static>]) {
    if IS_PLAIN.load(Relaxed) { (&PLAIN, &PLAIN_ROWS) } else { (&CALLER, &ROWS) }
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
        (0..count).for_each(|number| page.put(number, caller().0));
        machine::synchronise(page.base.cast(), size);
        page
    }

    /// Puts code there.
    pub fn write(&self, number: usize, code: &[u8]) {
        self.put(number, code);
        machine::synchronise(self.base.cast::<u8>().wrapping_add(number * ROOM), code.len());
    }

    fn put(&self, number: usize, code: &[u8]) {
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
        self.load_as(number, CALLER.len(), caller().1)
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
