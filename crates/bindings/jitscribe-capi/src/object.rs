//! Writes all code that is alive to an object file.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use jitscribe::objects;

use crate::guard::guard;
use crate::opaque::OpaqueScribe;
use crate::outcome::{Failure, Outcome};
use crate::raw;
use crate::text::Str;

/// A format of object files.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// An ELF shared object, for dlopen.
    Elf = 0,
    /// A dynamic-link library for Windows, for LoadLibrary.
    Pe = 1,
    /// A dynamic library for macOS, unsigned.
    MachO = 2,
}

/// Writes all code that is alive to a new object file for a loader. With dlopen and dlsym, the same code runs in another process,
/// as far as it refers to nothing outside itself. If several codes have the same name, dlsym finds the one that was announced
/// last. The call is slow: milliseconds for thousands of codes.
///
/// @param path    of the file, which must not exist. Only this user can access it.
/// @param format  a jitscribe_object_format.
/// @return JITSCRIBE_RESULT_ERROR_NO_CODE, JITSCRIBE_RESULT_ERROR_FILE, JITSCRIBE_RESULT_ERROR_FORMAT, or
///         JITSCRIBE_RESULT_ERROR_ARGUMENT for a format that this library does not know.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_write_object(
    scribe: *const OpaqueScribe,
    path: Str,
    format: u32,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (scribe, path) = unsafe { (raw::shared(scribe)?.scribe, path.bytes()?) };
        const ELF: u32 = ObjectFormat::Elf as u32;
        const PE: u32 = ObjectFormat::Pe as u32;
        const MACH_O: u32 = ObjectFormat::MachO as u32;
        let format = match format {
            ELF => objects::ObjectFormat::Elf,
            PE => objects::ObjectFormat::Pe,
            MACH_O => objects::ObjectFormat::MachO,
            _ => return Err(Failure::Argument),
        };
        objects::write(&scribe, format, OsStr::from_bytes(path))?;
        Ok(())
    })
}
