//! JIT-compiled code that no runtime announces, found in the memory of its process.
//!
//! | Compiler | What is looked for | What a code is called |
//! |---|---|---|
//! | LuaJIT 2.1 | the `jit_State` of each Lua state, and in it the table of traces | `TRACE_3::FILE:7`, as in LuaJIT's own perf maps |
//! | PCRE2 10.32 and newer | the block of each compiled regular expression | `regex "(\w+)-agent:"`; the pattern is made from the opcodes of 10.32 to 10.47 |
//!
//! | Type | Answers |
//! |---|---|
//! | [`Compilers`] | from the file of a program or library: whether it has such a compiler |
//! | [`Finder`] | from the memory of a process: which code is there; asked again, what has changed |
//!
//! Nothing here opens a file or a process: the caller implements [`ReadAt`], and says what is mapped ([`Mapped`]).
//!
//! # What counts as found
//!
//! Bytes that only look like a structure must not name code. So a structure is accepted only if every pointer in it leads to memory of the right kind, its
//! numbers agree with each other, and its code is in executable memory that no file backs. The layouts of versions are in `luajit/layout.rs`, where
//! the one that fits is taken, and in `pcre2/opcodes.rs`, for the versions that libraries name.
//!
//! Processes of 64 bits, in little-endian order, are read.
//!
//! # Hostile input
//!
//! The process may put anything there, and changes it while it is read. No input makes this crate panic. What is read at one poll is limited: the bytes that are
//! scanned by the caller, the rest by [`limits`].
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

mod code;
mod compilers;
mod fields;
mod finder;
pub mod limits;
mod luajit;
mod mapped;
mod pcre2;
mod registry;
mod scan;

pub use code::{Change, FoundCode, Frame};
pub use compilers::Compilers;
pub use finder::{Finder, Poll};
pub use gdb_jit_list::ReadAt;
pub use mapped::Mapped;
pub use pcre2::Versions as Pcre2Versions;
