//! Shows the jitted code of the process it is linked into to the Valgrind that runs the process: as soon as code is
//! announced, callgrind, cachegrind, memcheck, massif, DHAT and helgrind know its functions and source lines, and walk
//! stacks through it, with inlined calls as frames of their own.
//!
//! ```
//! use publish_valgrind::{Code, Options, Valgrind};
//!
//! # let (directory, memory) = ("/tmp", [0xc3_u8]);
//! // Without Valgrind: `Err`, after a few instructions.
//! if let Ok(valgrind) = Valgrind::create(Options::new(directory)) {
//!     let address = memory.as_ptr().addr() as u64;
//!     valgrind.load(&Code::at(address, 1).named("nothing"));
//! }
//! ```
//!
//! # How it works
//!
//! Valgrind has no interface for announcing code. But it reads the symbols of an object file when a program maps it, and
//! keeps them when other memory takes its place. So each *region*, which is a few pages with code, has an object file.
//! When code is added to the region, the file is rewritten and mapped over the code for a moment. Before and afterwards,
//! the memory is the runtime's own: of any layout, private or shared, with any protection. `window.rs` explains why other
//! threads do not see that moment.
//!
//! Object files stay when the process has ended: profiles refer to them, and readers of profiles disassemble them.
//!
//! # What it costs
//!
//! Outside of Valgrind, nothing. Under it, an announcement takes some system calls, and writes 100 KiB to the page cache,
//! and Valgrind retranslates the code that shares a region with the new code. Code that is announced before anything near
//! it has run costs least. If other threads run without ever waiting, use `valgrind --fair-sched=try`: otherwise each of
//! these system calls may let them run for half a second.
//!
//! # Limits
//!
//! - Code that shares a page with a stack in use, or with an object file, is not shown (except for the files of the crate
//!   `code-arena`).
//! - If code is neither unloaded nor announced, it keeps the name of the code that was there before.
//! - When memory is unmapped, Valgrind forgets the lines of the region's code, but not its name.
//! - If functions are packed without a gap at any page boundary, the region keeps growing. Regions that are joined by
//!   code between them become one object file: what ran before counts for the other file.
//! - A `--scheduling-quantum` of less than a few hundred blocks lets other threads run at the wrong moment.
//! - Not for signal handlers, because there is a lock. If an allocation fails, the publisher gives up.

#[cfg(not(target_os = "linux"))]
compile_error!("how valgrind is shown code is known for Linux");

mod elf;
mod encode;
mod error;
mod files;
mod frames;
mod lines;
mod loaded;
mod memory;
mod name;
mod numbers;
mod object;
mod options;
mod publisher;
mod region;
mod sorted;
mod state;
mod text;
mod turn;
mod units;
mod window;

pub use error::{Cause, Error};
pub use jit_code::{Code, Inlined, Line};
pub use options::Options;
pub use publisher::Valgrind;
pub use unwind_info::{Row, Unwind};
