//! The code of a run as a shared object: what profilers know by themselves, to compare with.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// A shared object that was loaded, and stays.
#[derive(Debug)]
pub(crate) struct Library {
    path: PathBuf,
    handle: *mut c_void,
}

impl Library {
    /// Loads it. Whoever names it vouches for what is in it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |what: &str| Error::Library {
            path: path.to_owned(),
            cause: io::Error::other(what.to_owned()),
        };
        // Without a slash it would be looked for among the system's libraries.
        let whole = std::path::absolute(path).map_err(|_| failed("no path"))?;
        let name = CString::new(whole.as_os_str().as_bytes()).map_err(|_| failed("no path"))?;
        // SAFETY: A C string that outlives the call.
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            return Err(failed("it is no shared object that can be loaded"));
        }
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Where the code of this name is, which has to be the code that was compiled.
    pub(crate) fn find(&self, symbol: &str, bytes: &[u8]) -> Result<*const (), Error> {
        let failed = |what: &str| Error::Library {
            path: self.path.clone(),
            cause: io::Error::other(format!("{symbol}: {what}")),
        };
        let name = CString::new(symbol).map_err(|_| failed("no name"))?;
        // SAFETY: The handle of a library that is never closed, and a C string that outlives the call.
        let code: *const () = unsafe { dlsym(self.handle, name.as_ptr()) }.cast();
        if code.is_null() {
            return Err(failed("not in it"));
        }
        // SAFETY: The library was made from this run's code, whoever named it has vouched for that: the
        // symbol is a function of that size. It is readable, is not written, and stays.
        let there = unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes.len()) };
        if there == bytes { Ok(code) } else { Err(failed("other code")) }
    }
}
