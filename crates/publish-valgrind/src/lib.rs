//! Shows the jitted code of the process it is linked into to the valgrind that runs it, at once:
//! callgrind, cachegrind, memcheck, massif, DHAT and helgrind name functions and source lines of
//! code as soon as it is announced, and walk stacks through it, with inlined calls as frames of their own.
//!
//! ```
//! use publish_valgrind::{Code, Options, Valgrind};
//!
//! # let (directory, memory) = ("/tmp", [0xc3_u8]);
//! // Elsewhere than under valgrind: `Err`, at the cost of a few instructions.
//! if let Ok(valgrind) = Valgrind::create(Options::new(directory)) {
//!     let address = memory.as_ptr().addr() as u64;
//!     valgrind.load(&Code { address, size: 1, name: b"nothing", ..Code::default() }, [], []);
//! }
//! ```
//!
//! # How
//!
//! No valgrind can be told of code. But each reads the symbols of an object file when a program
//! maps it, and keeps them when other memory takes its place. So each *region*, some pages with
//! code, has an object file, and when code comes to it, the file is written anew and mapped over the
//! code for a moment. The memory is the runtime's own before and afterwards: of any layout, private or
//! shared, with any protection. What keeps other threads from seeing that moment is said in `window.rs`.
//!
//! Object files stay when the process has ended: profiles name them, and who reads profiles
//! disassembles them.
//!
//! # What it costs
//!
//! Outside of valgrind, nothing. Under it, announcing takes some system calls and 100 KiB written to
//! the page cache, and valgrind translates code anew that shares its region with the new code.
//! Code that is told while nothing near it has run costs least. Where other threads run without ever
//! waiting, `valgrind --fair-sched=try` is to be given: else each of these system calls may let them
//! run for half a second.
//!
//! # Limits
//!
//! - Code that shares a page with a stack that is in use, or an object file, is not shown (but for the files of the crate
//!   `code-arena`).
//! - Code that is neither unloaded nor announced keeps the name of the code that was there before.
//! - When memory is unmapped, valgrind forgets the lines of the region's code, not its name.
//! - Where functions lie packed without a gap at any page's boundary, the region grows on. Regions
//!   that are joined by code between them are one object file from then on: what ran before counts
//!   for the other file.
//! - `--scheduling-quantum` of less than some hundred blocks lets other threads in at the wrong
//!   moment.
//! - Not for signal handlers: there is a lock. Memory that cannot be had ends the process, as it
//!   does everywhere in Rust's standard library.

#[cfg(not(target_os = "linux"))]
compile_error!("how valgrind is shown code is known for Linux");

mod code;
mod elf;
mod encode;
mod error;
mod files;
mod frames;
mod lines;
mod memory;
mod name;
mod object;
mod options;
mod publisher;
mod region;
mod sorted;
mod state;
mod turn;
mod units;
mod window;

pub use code::{Code, Inlined, Line};
pub use error::{Cause, Error};
pub use options::Options;
pub use publisher::Valgrind;
pub use unwind_info::{Row, Unwind};
