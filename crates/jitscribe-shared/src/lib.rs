//! `libjitscribe.so`: what `jitscribe-capi` has, and the two symbols by which debuggers find code.
//!
//! A shared library made of Rust exports what Rust defines by a name of its own choosing; all else is made local by the
//! linker, and is gone when the library is stripped. That goes for the weak definitions in `publish-gdb`, too, which are
//! assembly. Here they are Rust's, and not weak, which between shared libraries makes no difference: the first one that
//! the process has is everybody's. In the static library they would not do, as two of them cannot be linked
//! together: so this is a crate of its own.
#![allow(unsafe_code)]

// All that the library has for C.
extern crate jitscribe_capi as _;

#[cfg(not(windows))]
mod interface {
    use std::cell::UnsafeCell;

    /// `struct jit_descriptor` of GDB's JIT interface.
    #[repr(C)]
    pub struct Descriptor {
        version: u32,
        action: u32,
        relevant: usize,
        first: usize,
    }

    /// Written by all who take part in the interface.
    #[repr(transparent)]
    pub struct Shared(#[allow(dead_code)] UnsafeCell<Descriptor>);

    // SAFETY: nothing here touches it; those who do use atomic stores.
    unsafe impl Sync for Shared {}

    /// The list of symbol files, empty.
    // SAFETY: the name is the interface's, and what stands there is what it says.
    #[unsafe(no_mangle)]
    pub static __jit_debug_descriptor: Shared =
        Shared(UnsafeCell::new(Descriptor { version: 1, action: 0, relevant: 0, first: 0 }));

    /// Debuggers have a breakpoint here.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    #[inline(never)]
    pub extern "C" fn __jit_debug_register_code() {
        // Bytes that no other function has, so that no linker folds it into another; and whatever was stored before the call
        // is in memory.
        // SAFETY: it loads a constant into a register that the compiler gives.
        unsafe {
            std::arch::asm!("/* {0} */", in(reg) 0x6a69_746a_usize, options(nostack, preserves_flags));
        }
    }
}
