//! Functions that node exports. They are looked up, not linked: with a node that lacks one, the addon says so.
#![allow(unsafe_code, reason = "the dynamic linker's interface")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// The address of a function that the program or one of its libraries exports.
pub(crate) fn find(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a C string; the lookup has no requirements.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// Whether an address is in a file that the dynamic linker has loaded.
pub(crate) fn is_in_library(address: *const c_void) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for; what is written is not read.
    (unsafe { libc::dladdr(address, info.as_mut_ptr()) }) != 0
}
