//! The unwinder of this process.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};

#[cfg(target_os = "linux")]
use crate::notes::Note;

/// The unwinder that accepts registrations in this process. They handle registrations differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// libgcc up to 12: registrations are in a list that every walk searches. The next walk sorts new registrations.
    OldLibgcc,
    /// libgcc since 13: registrations are in a tree.
    Libgcc,
    /// LLVM's libunwind: a registration is one FDE.
    Llvm,
}

type Register = unsafe extern "C" fn(*const c_void);
#[cfg(target_os = "linux")]
type RegisterTable = unsafe extern "C" fn(*const c_void, *mut c_void);
#[cfg(target_os = "linux")]
type DeregisterTable = unsafe extern "C" fn(*const c_void) -> *mut c_void;

/// The unwinder's functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) kind: Kind,
    register: Register,
    deregister: Register,
    /// Not there in LLVM's.
    #[cfg(target_os = "linux")]
    tables: Option<(RegisterTable, DeregisterTable)>,
}

impl Functions {
    /// Looks for it among the symbols of the process, and among those that this library was linked with. There are two if these are
    /// different ones.
    pub(crate) fn look() -> [Option<Self>; 2] {
        match (Self::among(symbol), linked()) {
            (None, linked) => [linked, None],
            (Some(found), Some(linked)) if linked.is(&found) => [Some(found), None],
            (found, linked) => [found, linked],
        }
    }

    /// Whether it is the same unwinder.
    fn is(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.register, other.register)
    }

    fn among(symbol: fn(&CStr) -> Option<*mut c_void>) -> Option<Self> {
        let register = function(symbol(c"__register_frame")?);
        let deregister = function(symbol(c"__deregister_frame")?);
        #[cfg(target_os = "macos")]
        return Some(Self { kind: Kind::Llvm, register, deregister });
        #[cfg(target_os = "linux")]
        Some(Self::with_tables(register, deregister, symbol))
    }

    /// What else there is tells which unwinder it is.
    #[cfg(target_os = "linux")]
    fn with_tables(
        register: Register,
        deregister: Register,
        symbol: fn(&CStr) -> Option<*mut c_void>,
    ) -> Self {
        let tables = symbol(c"__register_frame_info_table").zip(symbol(c"__deregister_frame_info"));
        // SAFETY: libgcc's functions of these names have these types.
        let tables = tables.map(|(register, deregister)| unsafe {
            (
                std::mem::transmute::<*mut c_void, RegisterTable>(register),
                std::mem::transmute::<*mut c_void, DeregisterTable>(deregister),
            )
        });
        // LLVM's alone has this one. libgcc has had a version node for each release that added something to it, and 13
        // did on every machine.
        let kind = if symbol(c"__unw_add_dynamic_fde").is_some() {
            Kind::Llvm
        } else if is_new_libgcc() || tables.is_none() {
            Kind::Libgcc
        } else {
            Kind::OldLibgcc
        };
        Self { kind, register, deregister, tables }
    }

    /// # Safety
    /// `descriptions` points to descriptions of frames, each behind its common part, that end with a zero length. All
    /// stays as it is until it is deregistered.
    pub(crate) unsafe fn register(&self, descriptions: *const u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.register)(descriptions.cast()) }
    }

    /// # Safety
    /// `list` points to pointers to descriptions, as [`Self::register`] takes them, and ends with null. All stays as
    /// it is until it is deregistered, and so does the note, which is no other registration's.
    #[cfg(target_os = "linux")]
    pub(crate) unsafe fn register_table(&self, list: *const *const u8, note: &Note) {
        if let Some((register, _)) = self.tables {
            // SAFETY: guaranteed by the caller.
            unsafe { register(list.cast(), note.pointer()) }
        }
    }

    /// # Safety
    /// The list was registered, and not deregistered since.
    #[cfg(target_os = "linux")]
    pub(crate) unsafe fn deregister_table(&self, list: *const *const u8) {
        if let Some((_, deregister)) = self.tables {
            // SAFETY: guaranteed by the caller. What is returned is the note.
            unsafe { deregister(list.cast()) };
        }
    }

    /// # Safety
    /// What is there was registered, and not deregistered since.
    pub(crate) unsafe fn deregister(&self, registered: *const u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.deregister)(registered.cast()) }
    }
}

/// The unwinder that this library was linked with.
fn linked() -> Option<Functions> {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    ))]
    return Functions::among(crate::linked::function);
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    )))]
    None
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by a name that ends with a NUL.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

fn function(symbol: *mut c_void) -> Register {
    // SAFETY: both functions looked for by `Functions::look` have this type, in libgcc and in LLVM's libunwind.
    unsafe { std::mem::transmute::<*mut c_void, Register>(symbol) }
}

/// Whether the libgcc that is loaded is of version 13 or later.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_new_libgcc() -> bool {
    // Conversions of 16-bit floats, which are new in 13: on x86, and on 64-bit ARM.
    [c"__floattibf", c"__fixbfti", c"__extendbfsf2", c"__truncsfbf2"].into_iter().any(|name| {
        [c"GCC_13.0.0", c"GCC_14.0.0"].into_iter().any(|version| {
            // SAFETY: a lookup by names that end with a NUL.
            let address =
                unsafe { libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), version.as_ptr()) };
            !address.is_null()
        })
    })
}

/// What is not known to be new is treated as old, which is right for both.
#[cfg(all(target_os = "linux", not(target_env = "gnu")))]
fn is_new_libgcc() -> bool {
    false
}
