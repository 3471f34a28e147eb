//! What a test needs of the machine.

pub use test_privilege::{Privilege, have};

/// Ends the test, and says so, unless the machine gives these privileges: `needs!(Perf, Mounts);`.
#[macro_export]
macro_rules! needs {
    ($($privilege:ident),*) => {
        if !$crate::privilege::have(&[$($crate::privilege::Privilege::$privilege),*]) {
            return;
        }
    };
}
