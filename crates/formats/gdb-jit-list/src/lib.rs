//! The list of symbol files that a process registers with GDB's JIT interface, read from outside.
//!
//! A JIT compiler that supports debuggers keeps a list of object files in the memory of its process
//! ([JIT Compilation Interface](https://sourceware.org/gdb/current/onlinedocs/gdb.html/JIT-Interface.html)). Its head is the variable
//! `__jit_debug_descriptor`. LLVM's listeners (numba, JAX, PostgreSQL), wasmtime, PHP, LuaJIT and others write it.
//!
//! | Type | From | Answers |
//! |---|---|---|
//! | [`Heads`] | the file of a program or library | where the heads of lists are: also if the symbol is local, or there are a million symbols |
//! | [`List`] | the memory of a process | which objects are registered; asked again, what has changed |
//! | [`Symfile`] | an object in the list | functions with address and name, source lines, and unwind info |
//!
//! Nothing here opens a file or a process: the caller implements [`ReadAt`].
//!
//! ```
//! use gdb_jit_list::{Change, List, ReadAt};
//!
//! // The memory of a process: a head at 0x10, an entry at 0x40, and what it registers at 0x80.
//! let mut memory = vec![0; 0x90];
//! memory[0x10] = 1; // version
//! memory[0x20] = 0x40; // the first entry
//! memory[0x50] = 0x80; // its object
//! memory[0x58] = 4; // its size
//! memory[0x80..0x84].copy_from_slice(b"\x7fELF");
//!
//! let mut objects = Vec::new();
//! List::default().poll(memory.as_slice(), &[0x10], |change| match change {
//!     Change::Registered { object, .. } => objects.push(object.to_vec()),
//!     Change::Unregistered { .. } => unreachable!(),
//! });
//! assert_eq!(objects, [b"\x7fELF"]);
//! ```
//!
//! Processes and objects of 64 bits, in little-endian order, are read.
//!
//! # Hostile input
//!
//! The process may put anything there, and changes it while it is read. No input makes this crate panic. The numbers of lists, entries,
//! functions and lines and the bytes that are read are limited (see [`limits`]), and the time is at most n·log n in them. Whether the code
//! that an object describes is executable memory is for the caller to check: some runtimes copy their code elsewhere.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

mod elf;
mod fields;
mod frames;
mod heads;
pub mod limits;
mod lines;
mod list;
mod read_at;
mod relocated;
mod symfile;

pub use frames::Frames;
pub use heads::{Heads, Segment};
pub use lines::SourceLine;
pub use list::{Change, List};
pub use read_at::ReadAt;
pub use symfile::{Function, Symfile};
