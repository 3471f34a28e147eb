//! Runs when the library is loaded, and when the process ends.

use crate::{fork, guest, watch};

extern "C" fn begin() {
    fork::register_handlers();
    // Standard error belongs to the program. A panic stops the watching, and has no other effect.
    #[allow(clippy::disallowed_methods, reason = "a box of nothing takes no memory")]
    std::panic::set_hook(Box::new(|_| ()));
}

extern "C" fn end() {
    guest::isolated(watch::read_at_exit);
}

#[used]
// SAFETY: the section contains pointers to functions without arguments that are called once each.
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
// SAFETY: as above.
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
