//! Operating system errors, formatted without an allocation.
#![allow(unsafe_code)]

use std::fmt;

/// The number of an operating system error. It is formatted like [`std::io::Error`], which would allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsError(pub i32);

impl OsError {
    /// The number of the operating system error in `error`, if it has one.
    #[must_use]
    pub fn of(error: &std::io::Error) -> Option<Self> {
        error.raw_os_error().map(Self)
    }
}

impl fmt::Display for OsError {
    #[cfg(unix)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = usual(self.0) {
            return write!(f, "{text} (os error {})", self.0);
        }
        let mut text = [0_u8; 128];
        // SAFETY: the buffer is writable for its whole length, and its last byte is reserved for the NUL. `libc`
        // binds the POSIX variant of `strerror_r`, which writes only to this buffer.
        let failed =
            unsafe { libc::strerror_r(self.0, text.as_mut_ptr().cast(), text.len() - 1) } != 0;
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        match text.get(..end).and_then(|text| str::from_utf8(text).ok()) {
            Some(text) if !failed && !text.is_empty() => {
                write!(f, "{text} (os error {})", self.0)
            }
            _ => write!(f, "os error {}", self.0),
        }
    }

    #[cfg(not(unix))]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "os error {}", self.0)
    }
}

/// The text of an error that is common when files or memory are refused. glibc's `strerror_r` takes a lock to look up
/// a translation, and a signal handler may have interrupted the thread that holds this lock.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn usual(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::EPERM => "Operation not permitted",
        libc::EIO => "Input/output error",
        libc::EBADF => "Bad file descriptor",
        libc::EAGAIN => "Resource temporarily unavailable",
        libc::ENOMEM => "Cannot allocate memory",
        libc::EACCES => "Permission denied",
        libc::EFAULT => "Bad address",
        libc::EINVAL => "Invalid argument",
        libc::EFBIG => "File too large",
        libc::ENOSPC => "No space left on device",
        libc::ENOSYS => "Function not implemented",
        libc::EDQUOT => "Disk quota exceeded",
        _ => return None,
    })
}

/// Other C libraries take no lock here, or are not known to.
#[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
fn usual(_: i32) -> Option<&'static str> {
    None
}

/// An error of `std`, formatted without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct IoError<'a>(pub &'a std::io::Error);

impl fmt::Display for IoError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (OsError::of(self.0), self.0.get_ref()) {
            (Some(error), _) => fmt::Display::fmt(&error, f),
            (None, Some(inner)) => fmt::Display::fmt(inner, f),
            (None, None) => fmt::Display::fmt(&self.0.kind(), f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OsError;

    #[test]
    fn the_text_is_that_of_std() {
        for number in (1..=40).chain([122]) {
            let of_std = std::io::Error::from_raw_os_error(number).to_string();
            assert_eq!(OsError(number).to_string(), of_std);
        }
        assert!(OsError(99999).to_string().contains("os error 99999"));
    }
}
