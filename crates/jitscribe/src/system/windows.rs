//! Windows.
#![allow(unsafe_code)]

use std::path::PathBuf;

use windows_sys::Win32::System::Diagnostics::Debug::IsDebuggerPresent;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

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

pub(crate) fn thread_id() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { GetCurrentThreadId() }
}

/// No program runs with more rights than who started it.
pub(crate) fn has_more_rights() -> bool {
    false
}

/// Whether a debugger is attached.
pub(crate) fn is_traced() -> bool {
    // SAFETY: it takes nothing.
    unsafe { IsDebuggerPresent() != 0 }
}

/// Nothing counts the log's memory by itself.
pub(crate) fn memory_limit() -> Option<u64> {
    None
}

/// There are no files to be put there.
pub(crate) fn private_dir() -> std::io::Result<PathBuf> {
    Err(std::io::ErrorKind::Unsupported.into())
}
