//! Symbols that may not be there.

/// The address of a symbol of the program, as a `*mut c_void`; null if nothing that was linked has it.
///
/// The reference is weak: it makes the linker link nothing more, and a missing symbol is no error. Unlike with `dlsym`, the symbols of a
/// static program are found. Linux on x86-64 and AArch64.
#[macro_export]
macro_rules! weak_symbol {
    ($name:literal) => {{
        let address: *mut ::core::ffi::c_void;
        // SAFETY: it reads the symbol's entry of the global offset table, which the linker makes.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            ::core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            ::core::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(nostack, preserves_flags, readonly),
            );
        }
        address
    }};
}
