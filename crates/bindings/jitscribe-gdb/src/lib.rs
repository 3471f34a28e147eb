//! A JIT reader for gdb: names, lines and unwinding for a process's jitted code, from its code log.
//!
//! ```text
//! (gdb) jit-reader-load /usr/lib/jitscribe/libjitscribe_gdb.so
//! ```
//!
//! A process that links the library shows its code to debuggers only when one is attached or on request. Its code log always
//! exists, also in a core file. The library publishes a *log locator*: one symfile in the list of the GDB JIT interface that
//! contains only the address of the log. gdb passes this file to the reader, which reads the log in the process's memory.
//!
//! - `abi`: the structures of gdb's `jit-reader.h`
//! - `target`: the process's memory, read through gdb
//! - `logs`: the logs that log locators refer to, and the codes in them
//! - `symbols`: converts codes to gdb's symbol tables and blocks
//! - `frames`: unwinds a frame to its caller
//!
//! # Limits
//!
//! These are limits of gdb's reader interface. Breakpoints by name do not find code, inlined calls are not frames of their
//! own, and `info symbol` does not work. gdb asks for names when a file appears in its list and when it attaches: code that
//! is announced later is unwound at once, but is named only after `jit-reader-unload` and `jit-reader-load`. The reader
//! ignores a process that itself shows its code to debuggers (`JITSCRIBE=gdb`). Frames are unwound on x86-64 only.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod abi;
mod frames;
mod logs;
mod reader;
mod symbols;
mod target;
