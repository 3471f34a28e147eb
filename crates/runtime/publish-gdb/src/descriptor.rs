//! The interface itself: the descriptor, its list, and the function in which debuggers set a breakpoint.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use code_image::{TAG, TAG_AT};

use crate::entry_point::EntryPoint;

/// `struct jit_code_entry`.
#[repr(C)]
struct RawEntry {
    next: *mut RawEntry,
    previous: *mut RawEntry,
    file: *const u8,
    file_size: u64,
}

/// `struct jit_descriptor`.
#[repr(C)]
struct RawDescriptor {
    version: u32,
    action: u32,
    relevant: *mut RawEntry,
    first: *mut RawEntry,
}

// Weak: a program that defines them uses its own, and several copies of this crate share one. With default visibility,
// because debuggers look for global symbols. The function has unique bytes, so that no linker folds it into another one:
// otherwise a breakpoint in it would be in the other function, too.
#[cfg(not(any(windows, target_vendor = "apple")))]
macro_rules! interface {
    ($pointer:literal, $($body:literal),+) => {
        std::arch::global_asm!(
            ".pushsection .data.__jit_debug_descriptor,\"aw\"",
            ".weak __jit_debug_descriptor",
            ".type __jit_debug_descriptor, %object",
            ".p2align 3",
            "__jit_debug_descriptor:",
            ".4byte 1",
            ".4byte 0",
            $pointer,
            $pointer,
            ".size __jit_debug_descriptor, . - __jit_debug_descriptor",
            ".popsection",
            ".pushsection .text.__jit_debug_register_code,\"ax\"",
            ".weak __jit_debug_register_code",
            ".type __jit_debug_register_code, %function",
            ".p2align 4",
            "__jit_debug_register_code:",
            $($body,)+
            ".size __jit_debug_register_code, . - __jit_debug_register_code",
            ".popsection",
        );
    };
}

// Mach-O: C names have an underscore in front, the linker keeps one of several weak definitions of a program and the loader one of those of
// its libraries, and symbols have no sizes. What nothing refers to stays.
#[cfg(target_vendor = "apple")]
macro_rules! interface {
    ($pointer:literal, $($body:literal),+) => {
        std::arch::global_asm!(
            ".pushsection __DATA,__data",
            ".globl ___jit_debug_descriptor",
            ".weak_definition ___jit_debug_descriptor",
            ".no_dead_strip ___jit_debug_descriptor",
            ".p2align 3",
            "___jit_debug_descriptor:",
            ".4byte 1",
            ".4byte 0",
            $pointer,
            $pointer,
            ".popsection",
            ".pushsection __TEXT,__text,regular,pure_instructions",
            ".globl ___jit_debug_register_code",
            ".weak_definition ___jit_debug_register_code",
            ".no_dead_strip ___jit_debug_register_code",
            ".p2align 4",
            "___jit_debug_register_code:",
            $($body,)+
            ".popsection",
        );
    };
}

// COFF has no useful weak definitions, but sections of which the linker keeps one. A program's own definition is an error.
#[cfg(all(windows, target_arch = "x86_64"))]
std::arch::global_asm!(
    ".section .data$__jit_debug_descriptor,\"dw\",discard,__jit_debug_descriptor",
    ".globl __jit_debug_descriptor",
    ".p2align 3",
    "__jit_debug_descriptor:",
    ".4byte 1",
    ".4byte 0",
    ".8byte 0",
    ".8byte 0",
    ".section .text$__jit_debug_register_code,\"xr\",discard,__jit_debug_register_code",
    ".globl __jit_debug_register_code",
    ".p2align 4",
    "__jit_debug_register_code:",
    "nop dword ptr [rax + 0x6a69746a]",
    "ret",
    ".text",
);
#[cfg(all(not(windows), target_arch = "x86_64"))]
interface!(".8byte 0", "endbr64", "nop dword ptr [rax + 0x6a69746a]", "ret");
#[cfg(target_arch = "x86")]
interface!(".4byte 0", "nop dword ptr [eax + 0x6a69746a]", "ret");
#[cfg(target_arch = "aarch64")]
interface!(".8byte 0", "mov x9, #0x6a69", "movk x9, #0x746a, lsl #16", "ret");
#[cfg(target_arch = "arm")]
interface!(".4byte 0", "mov r12, #0x6a", "mov r12, #0x74", "bx lr");
#[cfg(target_arch = "riscv64")]
interface!(".8byte 0", "li t0, 0x6a69746a", "ret");
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "aarch64",
    target_arch = "arm",
    target_arch = "riscv64"
)))]
compile_error!("publish-gdb does not know this machine");

unsafe extern "C" {
    static mut __jit_debug_descriptor: RawDescriptor;
    fn __jit_debug_register_code();
}

const NOTHING: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

/// Maximum number of entries in a walk over the list: with more, the list is taken to be circular.
const LONGEST_LIST: usize = 1 << 22;

/// An entry of ours. Its memory is never freed: another writer of the list may have its address.
#[derive(Debug)]
pub(crate) struct Entry(NonNull<RawEntry>);

// SAFETY: only the holder of the state's lock accesses an entry.
unsafe impl Send for Entry {}

fn first() -> &'static AtomicPtr<RawEntry> {
    // SAFETY: the descriptor is a static of this layout, aligned to 8, in writable memory. Other writers use plain stores
    // of a pointer's size: other languages have no atomics for it, and the interface is defined this way.
    unsafe { AtomicPtr::from_ptr(&raw mut __jit_debug_descriptor.first) }
}

/// Whether a debugger has its breakpoint in the function, and so reads what changes: gdb and lldb place it at the function's address,
/// and `endbr64` may come before it.
pub(crate) fn is_watched() -> bool {
    static FUNCTION: EntryPoint = EntryPoint::new();
    FUNCTION.has_breakpoint((__jit_debug_register_code as *const ()).addr() as u64)
}

/// Passes an entry to the debugger, with an action.
fn notify_debugger(action: u32, entry: *mut RawEntry) {
    // SAFETY: as for `first`.
    let (relevant, word) = unsafe {
        (
            AtomicPtr::from_ptr(&raw mut __jit_debug_descriptor.relevant),
            AtomicU32::from_ptr(&raw mut __jit_debug_descriptor.action),
        )
    };
    relevant.store(entry, Relaxed);
    word.store(action, Release);
    // SAFETY: it has no arguments, changes nothing that a call may not change, and returns; a definition of the program
    // follows the same rules.
    unsafe { __jit_debug_register_code() };
    // A debugger that attaches later, or opens a core file, must not find a pending action.
    word.store(NOTHING, Relaxed);
    relevant.store(ptr::null_mut(), Release);
}

fn link(entry: *mut RawEntry) {
    let first = first();
    let mut head = first.load(Acquire);
    loop {
        // SAFETY: `entry` is ours and not in the list. `head` is in the list, in which entries are valid.
        unsafe {
            next(entry).store(head, Relaxed);
            previous(entry).store(ptr::null_mut(), Relaxed);
            if !head.is_null() {
                previous(head).store(entry, Release);
            }
        }
        match first.compare_exchange(head, entry, AcqRel, Acquire) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

fn unlink(entry: *mut RawEntry) {
    // SAFETY: `entry` is in the list, and so are its neighbours.
    unsafe {
        let (before, behind) = (previous(entry).load(Acquire), next(entry).load(Acquire));
        let is_first =
            before.is_null() && first().compare_exchange(entry, behind, AcqRel, Acquire).is_ok();
        if !is_first {
            // Another writer linked in before us, and may not have updated our entry yet.
            let before = if before.is_null() { find_before(entry) } else { before };
            if !before.is_null() {
                next(before).store(behind, Release);
            }
        }
        if !behind.is_null() {
            previous(behind).store(before, Release);
        }
    }
}

/// The entry whose successor is `entry`.
fn find_before(entry: *mut RawEntry) -> *mut RawEntry {
    let mut at = first().load(Acquire);
    for _ in 0..LONGEST_LIST {
        if at.is_null() {
            break;
        }
        // SAFETY: `at` is in the list.
        let behind = unsafe { next(at) }.load(Acquire);
        if behind == entry {
            return at;
        }
        at = behind;
    }
    ptr::null_mut()
}

/// # Safety
/// `entry` is valid for as long as the result is used.
unsafe fn next<'e>(entry: *mut RawEntry) -> &'e AtomicPtr<RawEntry> {
    // SAFETY: valid, as guaranteed by the caller, and aligned, because it is a C struct of its own.
    unsafe { AtomicPtr::from_ptr(&raw mut (*entry).next) }
}

/// # Safety
/// As for [`next`].
unsafe fn previous<'e>(entry: *mut RawEntry) -> &'e AtomicPtr<RawEntry> {
    // SAFETY: as in `next`.
    unsafe { AtomicPtr::from_ptr(&raw mut (*entry).previous) }
}

impl Entry {
    /// `None` if the allocation fails.
    pub(crate) fn new() -> Option<Self> {
        let entry = fallible::leaked(RawEntry {
            next: ptr::null_mut(),
            previous: ptr::null_mut(),
            file: ptr::null(),
            file_size: 0,
        });
        entry.ok().map(|entry| Self(NonNull::from(entry)))
    }

    /// Adds `file` to the list and informs the debugger. The file must not move until [`Self::unregister`].
    pub(crate) fn register(&self, file: &[u8]) {
        let entry = self.0.as_ptr();
        // SAFETY: the entry is ours and not in the list: no other code reads it, except a debugger with an outdated list.
        unsafe {
            (&raw mut (*entry).file).write(file.as_ptr());
            (&raw mut (*entry).file_size).write(file.len() as u64);
        }
        link(entry);
        notify_debugger(REGISTER, entry);
    }

    /// Removes the entry from the list and informs the debugger.
    pub(crate) fn unregister(&self) {
        unlink(self.0.as_ptr());
        notify_debugger(UNREGISTER, self.0.as_ptr());
    }
}

/// Repairs the list after changes that other threads had not finished. For the child of a fork, while it has only this
/// thread.
///
/// The list is intact when walked from its beginning, but an entry's predecessor may be wrong: one that was not in the list
/// yet, or is not any more.
pub(crate) fn repair_after_fork() {
    let mut before = ptr::null_mut();
    let mut at = first().load(Acquire);
    for _ in 0..LONGEST_LIST {
        if at.is_null() {
            break;
        }
        // SAFETY: entries in the list are valid.
        unsafe {
            previous(at).store(before, Relaxed);
            before = at;
            at = next(at).load(Acquire);
        }
    }
    // SAFETY: as for `first`.
    unsafe {
        AtomicU32::from_ptr(&raw mut __jit_debug_descriptor.action).store(NOTHING, Relaxed);
        AtomicPtr::from_ptr(&raw mut __jit_debug_descriptor.relevant)
            .store(ptr::null_mut(), Relaxed);
    }
}

/// Unregisters all files that contain `tag`. For the child of a fork, while it has only this thread.
pub(crate) fn unregister_tagged(tag: [u8; TAG]) {
    let mut at = first().load(Acquire);
    for _ in 0..LONGEST_LIST {
        if at.is_null() {
            break;
        }
        // SAFETY: entries in the list are valid, and so are their files, which a debugger might read right now.
        let (behind, is_ours) = unsafe {
            let is_large = (*at).file_size as usize >= TAG_AT + TAG && !(*at).file.is_null();
            let is_ours = is_large && ptr::read((*at).file.add(TAG_AT).cast::<[u8; TAG]>()) == tag;
            (next(at).load(Acquire), is_ours)
        };
        if is_ours {
            unlink(at);
            notify_debugger(UNREGISTER, at);
        }
        at = behind;
    }
}
