//! For libraries that give this one another interface, such as one for C: what they report of a description that they could not pass
//! on.

use crate::Scribe;

/// Counts a code that could not be announced because an allocation failed. This is reported once.
#[cold]
pub fn left_out(scribe: &Scribe) {
    if let Some(log) = scribe.0.current() {
        log.refused();
        scribe.0.host.report_left_out();
    }
}

/// Reports that lines of a code with this name refer to files that are not in its list, and were left out.
#[cold]
pub fn files_are_missing(scribe: &Scribe, name: &[u8]) {
    scribe.0.host.report_missing_files(name);
}

/// The number of [`Scribe::log_fd`]'s descriptor. In the child of a fork, the file may lack what the parent had announced.
#[cfg(target_os = "linux")]
#[must_use]
pub fn log_fd_number(scribe: &Scribe) -> Option<std::os::fd::RawFd> {
    use std::os::fd::AsRawFd;
    Some(scribe.0.host.log.as_ref()?.fd()?.as_raw_fd())
}
