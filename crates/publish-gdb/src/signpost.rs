//! Where the code log is, for debuggers that read it themselves.

use code_image::Target;

use crate::descriptor::Entry;

/// Tells debuggers that this process keeps a code log in the `size` bytes from `address` on, as long as it lives.
///
/// One that has a reader for it (`jitscribe-gdb`) needs to be shown no code. The others find a file with nothing in it.
pub fn put_up_signpost(target: Target, address: u64, size: u64) {
    Entry::new()
        .register(Box::leak(code_image::signpost(target, address, size).into_boxed_slice()));
}
