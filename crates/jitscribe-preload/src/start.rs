//! What is done when the library is loaded, and when the process ends.

use crate::{fork, guest, watch};

extern "C" fn begin() {
    fork::ask_to_be_told();
    // Standard error is the program's. A panic ends all watching, and that is all.
    std::panic::set_hook(Box::new(|_| ()));
}

extern "C" fn end() {
    guest::quietly(watch::last_look);
}

#[used]
// SAFETY: the section is one of pointers to functions without arguments that are called once each.
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
// SAFETY: as above.
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
