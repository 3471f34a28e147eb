//! A reader for gdb: names, lines and unwinding of a process's jitted code, by the code log that it keeps.
//!
//! ```text
//! (gdb) jit-reader-load /usr/lib/jitscribe/libjitscribe_gdb.so
//! ```
//!
//! A process that links the library shows debuggers its code only when one is there or someone asks. Its code log is
//! always there, in a core file, too. The library puts up a *signpost*: one file in the list of GDB's JIT interface, with
//! nothing in it but where the log is. For this file gdb asks the reader, which reads the log in the process's memory.
//!
//! - `abi`: the structures of gdb's `jit-reader.h`
//! - `target`: the process's memory, as gdb reads it
//! - `logs`: the logs that signposts told of, and who is where by them
//! - `symbols`: codes → what gdb calls symbol tables and blocks
//! - `frames`: one frame → the one that called it
//!
//! # Limits
//!
//! They are those of gdb's interface for readers. Breakpoints by name do not find code, inlined calls are no frames of their
//! own, and there is no `info symbol`. gdb asks for names when a file comes into its list and when it attaches: code that
//! is announced later is unwound at once, but is named only after `jit-reader-unload` and `jit-reader-load`. A process that
//! shows its code to debuggers itself (`JITSCRIBE=gdb`) is left to that. Frames are unwound on x86-64.
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
