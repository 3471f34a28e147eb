//! Shows the code of the process it is linked into to debuggers: gdb, lldb and others that support the GDB JIT interface.
//!
//! ```no_run
//! use code_image::{Endian, Target};
//! use publish_gdb::{Code, Gdb, Options};
//!
//! let gdb = Gdb::create(Target::new(62 /* EM_X86_64 */, Endian::Little), Options::default())?;
//! let code = Code::at(0x7f00_0000_1000, 0x40).named("answer");
//! gdb.load(1, &code);
//! gdb.unload(1, code.address);
//! # Ok::<(), fallible::Refused>(())
//! ```
//!
//! # What debuggers see
//!
//! The interface is a list of symfiles in the process's memory, `__jit_debug_descriptor`, and an empty function,
//! `__jit_debug_register_code`, in which the debugger sets a breakpoint
//! (<https://sourceware.org/gdb/current/onlinedocs/gdb.html/JIT-Interface.html>). Each call passes one file to the debugger. A
//! debugger that attaches later, or that opens a core file, reads the whole list.
//!
//! - **Immediate.** When [`Gdb::load`] returns, the code is in a file of its own in the list, and the debugger has read it.
//! - **Few files.** A debugger's work for a file grows with the number of files and sections that it has: with one file per
//!   function, ten thousand functions take it minutes. So 32 small files are joined into a larger one, and 32 of those into one of
//!   about 1,000 codes, and codes that lie next to one another share a section. The work for all of n codes is linear, and there
//!   are at most n / 1,000 files plus 64. For gdb, the new file is in the list before the old ones are removed; for lldb, which
//!   forgets sections by their addresses, after.
//! - **Limited overhead.** Each call stops the process while the debugger works: at least 100 µs, often a millisecond. When
//!   1,024 calls have been made in a row, and have taken three seconds, further calls may take up at most half of the time. Code that
//!   is announced faster waits for as long as the last calls took; then all waiting code is shown at once. A thread does this,
//!   which is created when it is first needed. With [`Options::each`], nothing waits.
//! - **Up to date.** Unloaded code is removed from its file in place. A debugger that is attached, as its breakpoint in
//!   `__jit_debug_register_code` shows, reads the file again: at once if there is a breakpoint in the code ([`has_breakpoint`]),
//!   else within the same limits. Code that is loaded over other code unloads that code.
//!
//! A debugger that reads the process's code log needs none of this, but the log's address: see [`LogLocator`].
//!
//! # Several users in one process
//!
//! Both symbols are weak: if a program or library defines them itself (wasmtime, LuaJIT), its definitions are used, and
//! several copies of this crate share one. They share the list, for which the interface has no lock. The list can be walked
//! from its beginning at every instant, and only our own entries are ever unlinked. Another writer can get in between two of
//! our stores only within a few nanoseconds. If that happens, an entry may be lost, as with all other users of the interface.
//!
//! # Blocked debuggers
//!
//! Only one thread at a time calls the debugger, which may stop it for as long as the user wants. The other threads do not
//! wait for it: after at most 20 ms, they leave their work to it.
//!
//! # Limits
//!
//! Not for signal handlers. An executable that was stripped of its symbols has neither symbol, and debuggers do not find them,
//! unless it was linked with `-Wl,--export-dynamic-symbol=__jit_debug_descriptor` and
//! `-Wl,--export-dynamic-symbol=__jit_debug_register_code`.

mod breakpoint;
mod budget;
mod debugger;
mod descriptor;
mod entry_point;
mod files;
mod log_locator;
mod publisher;
mod try_lock;
mod waiting;

pub use breakpoint::has_breakpoint;
pub use jit_code::{Code, Inlined, Line, Unwind};
pub use log_locator::LogLocator;
pub use publisher::{AfterFork, Gdb, Options};
