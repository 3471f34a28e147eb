//! Functions and lines of the guest program that QEMU's user mode runs.
//!
//! QEMU translates guest code block by block. Its perf map has a line for each guest instruction, its jitdump a code for each
//! block; both are named by the guest address (`guest-0x401136`), unless QEMU was built with libdw. The guest's memory is QEMU's own, at the same
//! addresses for a 64-bit guest: so a recording with mappings of data (`perf record --data`) has the guest's program and libraries, and their
//! symbols and DWARF have the functions and lines.
//!
//! What was found is written as a jitdump, so that nothing else has to know of guests.

mod guest_files;
mod names;
mod translate;

pub use guest_files::GuestFiles;
pub use names::MapBlocks;
pub use translate::{Guest, translate_dump, translate_map};
