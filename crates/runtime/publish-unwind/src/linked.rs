//! Functions of the unwinder that the program was linked with.
//!
//! The dynamic linker does not know those of a static program, nor those of a program with an unwinder of its own
//! (`gcc -static-libgcc`), which is the one that its exceptions use. A weak reference is null if nothing has defined its symbol; it
//! makes the linker link nothing more.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};

use guest::weak_symbol;

/// The function of this name.
pub(crate) fn function(name: &CStr) -> Option<*mut c_void> {
    let address = match name.to_bytes() {
        b"__register_frame" => weak_symbol!("__register_frame"),
        b"__deregister_frame" => weak_symbol!("__deregister_frame"),
        b"__register_frame_info_table" => weak_symbol!("__register_frame_info_table"),
        b"__deregister_frame_info" => weak_symbol!("__deregister_frame_info"),
        b"__unw_add_dynamic_fde" => weak_symbol!("__unw_add_dynamic_fde"),
        _ => return None,
    };
    (!address.is_null()).then_some(address)
}
