//! The collector: a library of the tool, which an environment variable names, as for `jitprofiling.c` of Intel.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::NonNull;

use fallible::{PathText, Text};

use crate::error::{Cause, Error};
use crate::layout::{Inline, Load, NATIVE, TableLine, Unload, event};
use crate::variable::VARIABLE;

type Initialize = unsafe extern "C" fn() -> u32;
type NotifyEvent = unsafe extern "C" fn(kind: u32, data: *mut c_void) -> u32;

/// A collector that is running. It stays loaded until the process ends, as it may have threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collector {
    notify: NotifyEvent,
}

/// What the collector gets of a region of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region<'a> {
    pub(crate) method: u32,
    pub(crate) name: &'a CStr,
    pub(crate) address: usize,
    pub(crate) size: u32,
    pub(crate) lines: &'a [TableLine],
    pub(crate) source: Option<&'a CStr>,
}

impl Collector {
    /// Loads the collector that the variable names, and starts it.
    pub(crate) fn load() -> Result<Self, Error> {
        let path = path()?;
        // SAFETY: the path ends with a NUL. The constructors of the library run, which is what the user who set the variable asks
        // for, as with `LD_PRELOAD`.
        let library = unsafe { libc::dlopen(path.as_c_str().as_ptr(), libc::RTLD_LAZY) };
        let Some(library) = NonNull::new(library) else {
            return Err(Error(Cause::NotLoaded(last_error())));
        };
        let notify = function(library, c"NotifyEvent", "NotifyEvent")?;
        let initialize = function(library, c"Initialize", "Initialize")?;
        // SAFETY: the library has functions of these names for the API, in which they have these types. It is never unloaded.
        let (notify, initialize) = unsafe {
            (
                std::mem::transmute::<*mut c_void, NotifyEvent>(notify.as_ptr()),
                std::mem::transmute::<*mut c_void, Initialize>(initialize.as_ptr()),
            )
        };
        // SAFETY: by the API, this may be called, and by each engine in the process.
        let mode = unsafe { initialize() };
        if mode == 0 { Err(Error(Cause::NotRunning)) } else { Ok(Self { notify }) }
    }

    /// One that ignores everything.
    #[cfg(test)]
    pub(crate) fn deaf() -> Self {
        unsafe extern "C" fn notify(_: u32, _: *mut c_void) -> u32 {
            1
        }
        Self { notify }
    }

    /// A code was loaded.
    pub(crate) fn load_code(self, region: &Region<'_>, module: &CStr) {
        let data = Load {
            method: region.method,
            name: region.name.as_ptr(),
            address: std::ptr::with_exposed_provenance(region.address),
            size: region.size,
            line_count: count(region.lines),
            lines: region.lines.as_ptr(),
            class: std::ptr::null(),
            source: region.source.map_or(std::ptr::null(), CStr::as_ptr),
            module: module.as_ptr(),
            architecture: NATIVE,
        };
        // SAFETY: this is the event's structure. Its strings end with a NUL, and the table has as many entries as it says; all of
        // them are borrowed until the call returns.
        unsafe { self.send(event::LOAD, &data) };
    }

    /// A region belongs to a call that was inlined into the callee, or code, with the id `parent`.
    pub(crate) fn load_inlined(self, region: &Region<'_>, parent: u32) {
        let data = Inline {
            method: region.method,
            parent,
            name: region.name.as_ptr(),
            address: std::ptr::with_exposed_provenance(region.address),
            size: region.size,
            line_count: count(region.lines),
            lines: region.lines.as_ptr(),
            class: std::ptr::null(),
            source: region.source.map_or(std::ptr::null(), CStr::as_ptr),
        };
        // SAFETY: as in `load_code`.
        unsafe { self.send(event::INLINE, &data) };
    }

    /// A code is about to be unloaded.
    pub(crate) fn unload_code(self, method: u32, address: usize, size: u32) {
        let data = Unload {
            method,
            // The API allows no NULL.
            name: c"".as_ptr(),
            address: std::ptr::with_exposed_provenance(address),
            size,
            line_count: 0,
            lines: std::ptr::null(),
            class_id: 0,
            class: std::ptr::null(),
            source: std::ptr::null(),
        };
        // SAFETY: as in `load_code`; there are no lines.
        unsafe { self.send(event::UNLOAD, &data) };
    }

    /// Calls the collector.
    ///
    /// # Safety
    /// `data` is the structure of this event, and everything that it refers to is valid.
    unsafe fn send<T>(self, kind: u32, data: &T) {
        // SAFETY: guaranteed by the caller. The collector copies the data: the API's parameter is not `const`, but its
        // documentation allows no change. The result says nothing that could be acted upon.
        unsafe { (self.notify)(kind, std::ptr::from_ref(data).cast_mut().cast()) };
    }
}

fn count(lines: &[TableLine]) -> u32 {
    // A table has fewer lines than its code has bytes.
    u32::try_from(lines.len()).unwrap_or(0)
}

/// The path of the collector, which may be a name that the dynamic linker searches.
fn path() -> Result<PathText, Error> {
    let path = fallible::attempt(|| {
        let path = fallible::variable(VARIABLE).filter(|path| !path.is_empty());
        // Asked last, as the variable is rarely set.
        path.filter(|_| !has_more_rights()).map(|path| PathText::new(OsStr::from_bytes(&path)))
    });
    match path {
        Ok(Some(Some(path))) => Ok(path),
        Ok(None) => Err(Error(Cause::NoCollector)),
        Ok(Some(None)) | Err(fallible::Refused) => Err(Error(Cause::Memory)),
    }
}

/// Whether the program has more privileges than its caller, who set the environment (`AT_SECURE`).
fn has_more_rights() -> bool {
    // SAFETY: a lookup by a number. The result is 0 for entries that do not exist, but the kernel always passes this one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn function(
    library: NonNull<c_void>,
    name: &CStr,
    shown: &'static str,
) -> Result<NonNull<c_void>, Error> {
    // SAFETY: a lookup by a NUL-terminated name, in a library that stays.
    let found = NonNull::new(unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) });
    found.ok_or_else(|| {
        // Clear the error message: otherwise the host would attribute it to its own calls.
        last_error();
        Error(Cause::Missing(shown))
    })
}

/// The dynamic linker's message about the last error of this thread.
fn last_error() -> Text {
    // SAFETY: it may be called at any time.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Text::new();
    }
    // SAFETY: a string, which is valid until this thread calls the dynamic linker again.
    let text = unsafe { CStr::from_ptr(text) };
    fallible::attempt(|| Text::from_utf8_lossy(text.to_bytes())).unwrap_or_default()
}
