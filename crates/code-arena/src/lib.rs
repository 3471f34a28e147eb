//! Memory for jitted code that is a growing object file.
//!
//! ```
//! use code_arena::{Code, CodeArena, Options};
//! # let directory = std::env::temp_dir();
//! # let machine_code = [0x6a_u8, 42, 0x58, 0xc3];
//! // `directory`: one to which only this user can write.
//! let Ok(arena) = CodeArena::create(Options::new(directory).removed()) else { return };
//! let Some(mut draft) = arena.allocate(machine_code.len(), 16) else { return };
//! draft.bytes_mut().copy_from_slice(&machine_code);
//! let code = draft.finish();
//! // Before it runs, what it is called goes into the file:
//! code_arena::announce(&Code {
//!     start: code.address(),
//!     size: 4,
//!     visible: code.address()..code.address() + 4,
//!     name: b"answer",
//!     ..Code::default()
//! }, None);
//! ```
//!
//! # What reads it
//!
//! All that reads the object files of a process, at any time, with no further step: `perf report` and `perf annotate`
//! of a plain `perf record`, with call graphs of any kind; a debugger that attaches later; samplers that unwind by
//! `.eh_frame`; `dladdr` and `backtrace_symbols`, which crash handlers use; `std::backtrace`; and unwinders in the
//! process, so that exceptions and panics pass through the code with nothing to register.
//!
//! # How
//!
//! Each *segment* of an arena is a file: an ELF shared object whose text, symbols, unwind tables and debug info have
//! room to grow. The process maps it twice. Its own loader links it (`dlopen`), and so it is in the list of shared
//! objects that everybody knows how to read; there text can be executed and not written. And it is mapped shared and
//! writable elsewhere. What is written there counts at once: every table is valid at every instant, its size
//! stored behind what it has. The search table of the unwind info has one row for every 32 bytes of text, so that no row
//! ever moves while someone searches.
//!
//! Where nothing can be linked (a static program) the file is mapped as the loader would. Tools that read
//! `/proc/PID/maps`, perf among them, see no difference.
//!
//! # What it costs
//!
//! An announcement takes no system call, but for one whenever a table has used up some 64 KiB that the disk was asked
//! for. A file takes disk space for what is used, about twice what the code has.
//!
//! # Limits
//!
//! - A file tells who is at an address, not who was: of code whose room is used again, samples go to who has it now. Freed
//!   room is used last for that reason.
//! - Two codes whose first bytes lie in one stretch of 32 bytes: unwinders in the process know one of them. What is
//!   allocated from here never does.
//! - Of code that is announced while a debugger is attached, the debugger does not learn from the file, which it has read.
//! - perf keeps copies of object files (`~/.debug`), under a build-id that stays. It copies where it cannot link: then a
//!   second recording of one process finds the first one's copy. `perf buildid-cache -P` forgets it.
//! - After a fork, the code from before is shared, and neither process changes it: see
//!   [`Options::forks_only_to_exec`].
//! - Not for signal handlers: there is a lock. Memory that cannot be had ends the process, as it does everywhere in
//!   Rust's standard library.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[cfg(not(target_os = "linux"))]
compile_error!("how tools read the object files of a process is known for Linux");

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
mod rooms;
mod segment;
mod slots;
mod sweep;
mod tables;
mod view;

pub use arena::{CodeArena, Draft, Executable};
pub use code_image::{Code, EhFrame, Inlined, Line};
pub use error::Error;
pub use options::Options;
pub use registry::{announce, are_there, contains, is_linked};
pub use unwind_info::{Row, Unwind};
