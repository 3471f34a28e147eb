//! `libjitscribe_preload.so`, for `LD_PRELOAD`: announces the code of a runtime that writes a perf map or a jitdump
//! through [`jitscribe::Scribe`], while the runtime writes and without its cooperation.
//!
//! The library interposes the C library's functions that open, write and close files (`exports/`). Each interposed
//! function calls the real one. If its file is a perf map or a jitdump, the library then reads what is new in the file
//! (`watch.rs`, `tail.rs`), regardless of who wrote it and how, and announces it (`announce.rs`). For all other files, a call costs
//! one more comparison (`span.rs`). Objects that are loaded with `RTLD_DEEPBIND` are redirected to the functions here
//! (`deepbind.rs`).
//!
//! # An uninvited guest
//!
//! - `errno` is preserved, nothing unwinds into the program, and threads are cancelled only inside the C library
//!   (`guest.rs`).
//! - Only one thread at a time reads files. Anyone else who comes (another thread, a signal handler, or the scribe's own
//!   writes) leaves a note and goes on (`watch.rs`).
//! - The library does not use the program's allocator: a signal handler that writes may have interrupted `malloc`
//!   (`memory.rs`). Code for which the system has no memory is left out, and the log counts it.
//! - The child of a fork goes on by itself. The child of a vfork shares its parent's memory, and does nothing (`owner.rs`, `fork.rs`).
//! - If anything goes wrong, the library stops watching, silently.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "each module that needs none forbids it")]

mod announce;
mod buffer;
mod deepbind;
mod disabled;
mod exports;
mod file;
mod fork;
mod function_names;
mod guest;
mod list;
mod memory;
mod names;
mod owner;
mod poll;
mod prologue;
mod real;
mod span;
mod start;
mod streams;
mod sys;
mod tail;
mod unfinished;
mod watch;
