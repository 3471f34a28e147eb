//! For C: the machine code that was at an address at a time, from a jitdump (`include/jitscribe/codes.h`).
//!
//! A library apart from the one that runtimes link: it is for tools that decode processor traces.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt::Display;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use code_bytes::CodeBytes;
use rustix::fs::{Mode, OFlags};

/// All codes of a dump, as C holds them.
#[derive(Debug)]
pub struct Codes {
    codes: CodeBytes,
    damage: Vec<CString>,
}

/// A code that was found: `jitscribe_codes_found`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its name.
    pub name: *const c_char,
    /// In bytes.
    pub name_size: usize,
    /// Address of its first byte.
    pub address: u64,
    /// Its machine code.
    pub bytes: *const u8,
    /// In bytes; 0 for a code without bytes.
    pub size: usize,
    /// The first address for which this is the answer.
    pub first_address: u64,
    /// The address behind the last one.
    pub end_address: u64,
    /// The first time for which this is the answer.
    pub first_time: u64,
    /// The time behind the last one.
    pub end_time: u64,
}

/// Runs what may panic; `otherwise` if it does.
fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn open(path: &Path) -> Result<Codes, String> {
    let failed = |error: &dyn Display| format!("{}: {error}", printable::path(path));
    // Without blocking: a path may lead to a pipe.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| failed(&std::io::Error::from(error)))?;
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        return Err(failed(&"not a regular file"));
    }
    let codes = CodeBytes::read(file, metadata.len()).map_err(|error| failed(&error))?;
    let damage = codes.damage().filter_map(|text| CString::new(text).ok()).collect();
    Ok(Codes { codes, damage })
}

/// Writes a text with a NUL into a buffer, as much as fits.
///
/// # Safety
/// `size` bytes may be written at `buffer`, unless it is NULL.
unsafe fn write_text(text: &str, buffer: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1).filter(|_| !buffer.is_null()) else { return };
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end` is at most `size - 1`, so that both writes are within the buffer, which is the caller's and not the text.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), end);
        buffer.add(end).write(0);
    }
}

/// Reads a jitdump; see the header.
///
/// # Safety
/// `path` ends with a NUL; `size` bytes may be written at `message`, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_open(
    path: *const c_char,
    message: *mut c_char,
    size: usize,
) -> *mut Codes {
    let opened = guard(Err("internal error".to_owned()), || {
        if path.is_null() {
            return Err("no path".to_owned());
        }
        // SAFETY: not NULL, and the caller guarantees a NUL at the end.
        let path = unsafe { CStr::from_ptr(path) };
        open(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
    });
    match opened {
        Ok(codes) => Box::into_raw(Box::new(codes)),
        Err(cause) => {
            // SAFETY: guaranteed by the caller.
            unsafe { write_text(&cause, message, size) };
            std::ptr::null_mut()
        }
    }
}

/// Frees it.
///
/// # Safety
/// `codes` is NULL or from [`jitscribe_codes_open`], and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_close(codes: *mut Codes) {
    if !codes.is_null() {
        // SAFETY: it is from `Box::into_raw`, and the caller does not use it any more.
        let codes = unsafe { Box::from_raw(codes) };
        guard((), || drop(codes));
    }
}

/// The code at an address at a time; see the header.
///
/// # Safety
/// `codes` is NULL or from [`jitscribe_codes_open`]; `found` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_at(
    codes: *const Codes,
    address: u64,
    time: u64,
    found: *mut Found,
) -> bool {
    guard(false, || {
        // SAFETY: guaranteed by the caller.
        let (codes, out) = unsafe { (codes.as_ref(), found.as_mut()) };
        let (Some(codes), Some(out)) = (codes, out) else { return false };
        let Some(at) = codes.codes.at(address, time) else { return false };
        *out = Found {
            name: at.name.as_ptr().cast(),
            name_size: at.name.len(),
            address: at.address,
            bytes: at.bytes.as_ptr(),
            size: at.bytes.len(),
            first_address: at.addresses.start,
            end_address: at.addresses.end,
            first_time: at.times.start,
            end_time: at.times.end,
        };
        true
    })
}

/// Copies the bytes at an address at a time; see the header.
///
/// # Safety
/// `codes` is NULL or from [`jitscribe_codes_open`]; `size` bytes may be written at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_copy(
    codes: *const Codes,
    address: u64,
    time: u64,
    buffer: *mut c_void,
    size: usize,
) -> usize {
    guard(0, || {
        // SAFETY: guaranteed by the caller.
        let Some(codes) = (unsafe { codes.as_ref() }) else { return 0 };
        if buffer.is_null() || size == 0 || size > isize::MAX as usize {
            return 0;
        }
        // What is uninitialised may not be a `u8`.
        // SAFETY: `size` bytes may be written there.
        unsafe { buffer.write_bytes(0, size) };
        // SAFETY: as above; all of them are initialised, and only this call uses them.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
        codes.codes.copy(address, time, buffer)
    })
}

/// The number of codes.
///
/// # Safety
/// `codes` is NULL or from [`jitscribe_codes_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_count(codes: *const Codes) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { codes.as_ref() }.map_or(0, |it| it.codes.len())
}

/// Whether times are counts of the processor's clock.
///
/// # Safety
/// `codes` is NULL or from [`jitscribe_codes_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_has_processor_clock(codes: *const Codes) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { codes.as_ref() }.is_some_and(|it| it.codes.has_processor_clock())
}

/// What could not be read, one sentence each.
///
/// # Safety
/// `codes` is NULL or from [`jitscribe_codes_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_codes_damage(codes: *const Codes, n: usize) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let text = unsafe { codes.as_ref() }.and_then(|it| it.damage.get(n));
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_pointers_are_answered_with_nothing() {
        let null = std::ptr::null();
        // SAFETY: NULL is allowed for each of these.
        unsafe {
            assert!(jitscribe_codes_open(null, std::ptr::null_mut(), 0).is_null());
            jitscribe_codes_close(std::ptr::null_mut());
            assert!(!jitscribe_codes_at(null.cast(), 0, 0, std::ptr::null_mut()));
            assert_eq!(jitscribe_codes_copy(null.cast(), 0, 0, std::ptr::null_mut(), 8), 0);
            assert_eq!(jitscribe_codes_count(null.cast()), 0);
            assert!(!jitscribe_codes_has_processor_clock(null.cast()));
            assert!(jitscribe_codes_damage(null.cast(), 0).is_null());
        }
    }

    #[test]
    fn a_failure_names_the_file_and_is_cut_to_the_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let expected = format!("{}: not a regular file", path.display());
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        let mut message = [1_u8; 300];
        for size in [message.len(), 10, 1] {
            // SAFETY: a text with a NUL, and a buffer of at least `size` bytes.
            let codes =
                unsafe { jitscribe_codes_open(path.as_ptr(), message.as_mut_ptr().cast(), size) };
            assert!(codes.is_null());
            let said = CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap();
            assert_eq!(said, &expected[..expected.len().min(size - 1)]);
        }
    }
}
