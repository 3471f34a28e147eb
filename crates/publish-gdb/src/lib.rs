//! Shows the code of the process it is linked into to debuggers: gdb, lldb and whoever else knows the GDB JIT interface.
//!
//! ```no_run
//! use code_image::{Code, Endian, Target};
//! use publish_gdb::{Gdb, Options};
//!
//! let gdb = Gdb::create(Target::new(62 /* EM_X86_64 */, Endian::Little), Options::default());
//! let code = Code {
//!     start: 0x7f00_0000_1000,
//!     size: 0x40,
//!     visible: 0x7f00_0000_1000..0x7f00_0000_1040,
//!     name: b"answer",
//!     ..Code::default()
//! };
//! gdb.load(1, &code);
//! gdb.unload(1, code.start);
//! ```
//!
//! # What a debugger is told
//!
//! The interface is a list of symbol files in the process's memory, `__jit_debug_descriptor`, and a function that does
//! nothing, `__jit_debug_register_code`, in which the debugger has a breakpoint
//! (<https://sourceware.org/gdb/current/onlinedocs/gdb.html/JIT-Interface.html>). It looks at one file a call. A debugger
//! that comes later reads the list, and so does one that looks at a core file.
//!
//! - **At once.** When [`Gdb::load`] returns the code is in a file of its own in the list, and the debugger has taken note.
//! - **Few.** A debugger's work for a file grows with the number of those it has: one file a function takes it minutes for ten
//!   thousand. So 32 small files are joined to a larger one, and 32 of those again to one of some 1,000 codes: the work for
//!   all of n codes is linear, and there are n / 1,000 files and at most 64. The new file is in the list before
//!   the old ones leave it.
//! - **In bounds.** Each call stops the process and has the debugger work: 100 µs at least, a millisecond often. When
//!   256 calls have been made in a row, and have taken 100 ms, more may take up half of the time only: what is announced
//!   faster than that waits for its turn, 200 ms at most, in which all that waits is shown by one call. It is
//!   a thread that comes back for it, which is made when it is needed first. With [`Options::each`] nothing waits.
//! - **True.** Code that is gone is taken out of its file, where it stands, and the debugger is told to read it again. Code
//!   loaded over other code says that the other is gone.
//!
//! # Guests in one process
//!
//! Both symbols are weak: where a program or library defines them itself (wasmtime, LuaJIT), these are taken, and several
//! copies of this crate make do with one. They share the list, for which the interface has no lock. It can be walked from
//! its beginning at every instant, nobody's entry but ours is ever unlinked, and the time in which another writer can
//! get between two stores of ours is some nanoseconds; but a race that is lost may cost an entry, here as in all others.
//!
//! # No debugger's prisoner
//!
//! One thread at a time speaks to the debugger, which may hold it for as long as the user thinks. The others do not wait
//! for it: they leave what they have to say to it after 20 ms at most.
//!
//! # Limits
//!
//! Not for signal handlers. An executable that was stripped of its symbols has neither of the two, and no debugger finds
//! them, unless it was linked with `-Wl,--export-dynamic-symbol=__jit_debug_descriptor` and
//! `-Wl,--export-dynamic-symbol=__jit_debug_register_code`.

mod budget;
mod descriptor;
mod files;
mod latch;
mod publisher;
mod signpost;

pub use publisher::{Forked, Gdb, Options};
pub use signpost::put_up_signpost;
