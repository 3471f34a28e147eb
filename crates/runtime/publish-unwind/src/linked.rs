//! Functions of the unwinder that the program was linked with.
//!
//! The dynamic linker does not know those of a static program, nor those of a program with an unwinder of its own
//! (`gcc -static-libgcc`), which is the one that its exceptions use. A weak reference is null if nothing has defined its symbol; it
//! makes the linker link nothing more.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};

/// The address of a symbol that may not be there, from the global offset table.
macro_rules! address {
    ($name:literal) => {{
        let address: *mut c_void;
        // SAFETY: it reads the symbol's entry of the table, which the linker makes.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
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

/// The function of this name.
pub(crate) fn function(name: &CStr) -> Option<*mut c_void> {
    let address = match name.to_bytes() {
        b"__register_frame" => address!("__register_frame"),
        b"__deregister_frame" => address!("__deregister_frame"),
        b"__register_frame_info_table" => address!("__register_frame_info_table"),
        b"__deregister_frame_info" => address!("__deregister_frame_info"),
        b"__unw_add_dynamic_fde" => address!("__unw_add_dynamic_fde"),
        _ => return None,
    };
    (!address.is_null()).then_some(address)
}
