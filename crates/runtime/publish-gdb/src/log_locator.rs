//! The log locator: the address of the code log, for debuggers that read the log themselves.

use code_image::Target;
use fallible::Refused;

use crate::descriptor::Entry;

/// Publishes for debuggers that this process keeps a code log in the `size` bytes at `address`, as long as it lives.
///
/// A debugger with the reader (`jitscribe-gdb`) then needs no symfiles. Others find a file with nothing in it.
///
/// # Errors
/// An allocation failed, and nothing was published.
pub fn register_log_locator(target: Target, address: u64, size: u64) -> Result<(), Refused> {
    let file = fallible::attempt(|| code_image::log_locator(target, address, size))?;
    let entry = Entry::new().ok_or(Refused)?;
    entry.register(file.into_inner().leak());
    Ok(())
}
