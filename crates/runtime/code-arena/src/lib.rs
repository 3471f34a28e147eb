//! Memory for jitted code that is a growing object file.
//!
//! ```
//! use code_arena::{Code, CodeArena, Options};
//! # let directory = std::env::temp_dir();
//! # let machine_code = [0x6a_u8, 42, 0x58, 0xc3];
//! // `directory`: a directory to which only this user can write.
//! let Ok(arena) = CodeArena::create(Options::new(directory).removed()) else { return };
//! let Some(mut draft) = arena.allocate(machine_code.len(), 16) else { return };
//! draft.bytes_mut().copy_from_slice(&machine_code);
//! let code = draft.finish();
//! // Before the code runs, announce it, so that its name goes into the file:
//! code_arena::announce(&Code::at(code.address(), 4).named("answer"));
//! ```
//!
//! # What reads it
//!
//! Everything that reads the object files of a process, at any time, without any further step: `perf report` and `perf
//! annotate` of a plain `perf record`, with any kind of call graph; a debugger that attaches later; samplers that unwind
//! with `.eh_frame`; `dladdr` and `backtrace_symbols`, which crash handlers use; `std::backtrace`; and the unwinders in
//! the process, so that exceptions and panics pass through the code without registration.
//!
//! # How it works
//!
//! Each *segment* of an arena is a file: an ELF shared object whose text, symbols, unwind tables and debug info have space
//! to grow. The process maps it twice. The process's own loader links it (`dlopen`), which makes it part of the list of
//! shared objects that every tool can read; in this mapping, text is executable and not writable. A second mapping
//! elsewhere is shared and writable. What is written there takes effect at once: every table is valid at every instant,
//! because its size is stored after its content. The search table of the unwind info has one row for every 32 bytes of
//! text, so no row moves while it is searched.
//!
//! Where linking is not possible (in a static program), the file is mapped as the loader would. Tools that read
//! `/proc/PID/maps`, such as perf, see no difference.
//!
//! # What it costs
//!
//! An announcement makes no system call, except one whenever a table has used up about 64 KiB of allocated disk space. A
//! file takes disk space for what is used, about twice the size of the code.
//!
//! # Limits
//!
//! - A file describes the code that is at an address now, not the code that was there. When the space of freed code is
//!   reused, its samples are attributed to the new code. Therefore, freed space is reused last.
//! - If two codes begin in the same 32-byte granule, unwinders in the process find only one of them. Code allocated from
//!   the arena never does.
//! - A debugger that is attached when code is announced does not see the code in the file, which it has already read.
//! - perf keeps copies of object files (`~/.debug`) under a build-id, which does not change. If it cannot make hard links,
//!   it makes copies, and a second recording of the same process finds the copy of the first one. `perf buildid-cache -P`
//!   removes it.
//! - After a fork, earlier code is shared, and neither process changes it: see [`Options::forks_only_to_exec`].
//! - Not for signal handlers, because there is a lock.
//! - If an allocation fails, the arena or the code is left out; the process goes on.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[cfg(not(target_os = "linux"))]
compile_error!("how tools read the object files of a process is known for Linux");

mod allocator;
mod area;
mod arena;
mod error;
mod file;
mod fork;
mod frames;
mod head;
mod instructions;
mod layout;
mod loaded;
mod options;
mod registry;
mod segment;
mod slots;
mod sweep;
mod tables;
mod view;

pub use arena::{CodeArena, Draft, Executable};
pub use error::Error;
pub use jit_code::{Code, Inlined, Line, Row, Unwind};
pub use options::Options;
pub use registry::{announce, are_there, contains, is_linked};
