//! Environment variables.
#![allow(unsafe_code)]

use std::ffi::CStr;

use crate::Vec;

/// Returns the value of an environment variable, like `std::env::var_os`.
#[must_use]
pub fn variable(name: &CStr) -> Option<Vec<u8>> {
    // SAFETY: the name ends with a NUL. The value is copied before other code can run in this thread. As with
    // `std::env::set_var`, code that changes the environment must ensure that no other thread reads it at the same
    // time.
    let value = unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }?;
    Some(Vec::from(value.to_bytes()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn variables_are_those_of_std() {
        use std::os::unix::ffi::OsStrExt;
        let of_std = std::env::var_os("PATH");
        let found = super::variable(c"PATH");
        assert_eq!(found.as_deref(), of_std.as_deref().map(OsStrExt::as_bytes));
        assert_eq!(super::variable(c"FALLIBLE_NO_SUCH_VARIABLE"), None);
    }
}
