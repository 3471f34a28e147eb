//! Windows.
#![allow(unsafe_code)]

use fallible::{PathText, Vec};
use windows_sys::Win32::System::Diagnostics::Debug::IsDebuggerPresent;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

/// Sleeps.
pub(crate) fn nap(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// Nanoseconds of the performance counter, the clock of Windows' own event traces.
pub(crate) fn nanoseconds() -> u64 {
    let (mut count, mut frequency) = (0, 0);
    // SAFETY: both write to the number that they are given. Neither fails since Windows XP.
    unsafe {
        QueryPerformanceCounter(&raw mut count);
        QueryPerformanceFrequency(&raw mut frequency);
    }
    let nanoseconds = u128::from(count.unsigned_abs()) * 1_000_000_000;
    (nanoseconds / u128::from(frequency.unsigned_abs().max(1))) as u64
}

pub(crate) fn process_id() -> u32 {
    std::process::id()
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { GetCurrentThreadId() }
}

/// No program runs with more privileges than the user who started it.
pub(crate) fn has_more_rights() -> bool {
    false
}

/// Whether a debugger is attached.
pub(crate) fn is_traced() -> bool {
    // SAFETY: it takes nothing.
    unsafe { IsDebuggerPresent() != 0 }
}

/// The log's memory has no limit of its own.
pub(crate) fn memory_limit() -> Option<u64> {
    None
}

/// The value of an environment variable.
pub(crate) fn variable(name: &std::ffi::CStr) -> Option<Vec<u8>> {
    let value = std::env::var_os(name.to_str().ok()?)?;
    Some(Vec::from(value.to_str()?.as_bytes()))
}

/// A path in UTF-8.
pub(crate) fn path(bytes: &[u8]) -> Option<PathText> {
    PathText::new(str::from_utf8(bytes).ok()?)
}

/// Why there is no directory that is private to this user.
#[derive(Debug)]
pub(crate) enum NoDirectory {
    /// This is not checked.
    Unsupported,
    #[allow(dead_code, reason = "as elsewhere")]
    Memory,
}

impl std::fmt::Display for NoDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is none on this system")
    }
}

pub(crate) fn private_dir() -> Result<PathText, NoDirectory> {
    Err(NoDirectory::Unsupported)
}
