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
//!   function, ten thousand functions take it minutes. So 32 small files are joined into a larger one, and those into one of
//!   about 256 codes, and codes that lie next to one another share a section. The work for all of n codes is linear, and there
//!   are at most n / 256 files plus 64. For gdb, the new file is in the list before the old ones are removed; for lldb, which
//!   forgets sections by their addresses, after. lldb's work for a file hardly grows with their number, so that for it, 4,096 small
//!   files are left before any are joined: this saves the call for each one that is removed.
//! - **Up to date.** Unloaded code is removed from its file in place. A debugger that is attached, as its breakpoint in
//!   `__jit_debug_register_code` shows, reads the file again: at once if there is a breakpoint in the code ([`has_breakpoint`]), and
//!   before other code is shown at this place. Code that is loaded over other code unloads that code.
//! - **Limited overhead.** Each call stops the process while the debugger works: at least 100 µs, often a millisecond. New code does not wait:
//!   a debugger cannot ask for it at a stop. Only where gdb has taken 15 seconds in a row, new code waits until the calls are at most half of
//!   the time: what a file costs gdb 16 grows with the files that it had before. When 1,024 calls have been made in a row, and have taken three seconds, what else
//!   there is to do waits until they are at most half of the time: files from which code was removed are made again later, by a
//!   thread that is created when it is first needed. With [`Options::each`], this does not wait either.
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
mod levels;
mod log_locator;
mod publisher;
mod shown;
mod try_lock;
mod waiting;

pub use breakpoint::has_breakpoint;
pub use jit_code::{Code, Inlined, Line, Unwind};
pub use log_locator::LogLocator;
pub use publisher::{AfterFork, Gdb, Options};
