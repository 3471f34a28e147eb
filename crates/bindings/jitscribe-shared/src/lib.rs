//! The shared library as cargo makes it: the C API of `jitscribe-capi`, and the two symbols by which debuggers find code. For Windows and
//! macOS, and for builds without make. The installed `libjitscribe.so` is linked from the static library, so that its symbols have versions
//! (`crates/bindings/jitscribe-capi/Makefile`).
//!
//! A shared library made from Rust exports only what Rust code defines under an unmangled name. The linker makes all other
//! symbols local, and stripping removes them. This includes the weak definitions in `publish-gdb`, which are assembly. Here,
//! they are defined in Rust, and not weak. Between shared libraries this makes no difference: the first definition in the
//! process is used by all. In the static library, strong definitions would not work, because two of them cannot be linked
//! together. Therefore this is a crate of its own.
#![allow(unsafe_code)]

// The whole C API.
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

    /// Written by everyone who uses the interface.
    #[repr(transparent)]
    pub struct Shared(#[allow(dead_code)] UnsafeCell<Descriptor>);

    // SAFETY: nothing here accesses it; other users access it with atomic stores.
    unsafe impl Sync for Shared {}

    /// The list of symfiles, empty.
    // SAFETY: the interface defines the name, and the static has the type and content that the interface expects.
    #[unsafe(no_mangle)]
    pub static __jit_debug_descriptor: Shared =
        Shared(UnsafeCell::new(Descriptor { version: 1, action: 0, relevant: 0, first: 0 }));

    /// Debuggers set a breakpoint here.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    #[inline(never)]
    pub extern "C" fn __jit_debug_register_code() {
        // The constant makes the function's bytes unique, so that no linker folds it into another. The assembly also forces
        // stores before the call to memory.
        // SAFETY: it loads a constant into a register that the compiler chooses.
        unsafe {
            std::arch::asm!("/* {0} */", in(reg) 0x6a69_746a_usize, options(nostack, preserves_flags));
        }
    }
}
