//! The log locator: the address of the code log, for debuggers that read the log themselves.

use std::time::Duration;

use code_image::Target;
use fallible::{Refused, Vec};

use crate::descriptor::Entry;
use crate::try_lock::TryLock;

/// How often a thread tries to get the locator, before it leaves it to the others. In the child of a fork, the thread that had it
/// may not exist.
const ATTEMPTS: u32 = 2000;

/// Tells debuggers that this process keeps a code log, and where, for as long as it lives.
///
/// A debugger with the reader (`jitscribe-gdb`), or with a script that reads the log, then needs no symfiles. Others find a file
/// with nothing in it.
#[derive(Debug)]
pub struct LogLocator {
    entry: TryLock<Entry>,
    file: Vec<u8>,
}

impl LogLocator {
    /// Registers the log in the `size` bytes at `address`.
    ///
    /// # Errors
    /// An allocation failed, and nothing was registered.
    pub fn register(target: Target, address: u64, size: u64) -> Result<&'static Self, Refused> {
        let file = fallible::attempt(|| code_image::log_locator(target, address, size))?;
        let entry = TryLock::new(Entry::new().ok_or(Refused)?);
        let locator = fallible::leaked(Self { entry, file })?;
        locator.entry.lock().register(&locator.file);
        Ok(locator)
    }

    /// Removes the locator and registers it again, for a debugger that reads the log whenever this happens.
    pub fn register_again(&self) {
        // A thread that holds the lock may have been stopped before this thread changed the log, so this one does it again.
        // Attempts are counted and not time, which also passes while the debugger has stopped the process.
        for _ in 0..ATTEMPTS {
            if let Some(entry) = self.entry.try_lock() {
                entry.unregister();
                entry.register(&self.file);
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}
