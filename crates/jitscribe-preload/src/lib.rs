//! `libjitscribe_preload.so`, for `LD_PRELOAD`: a runtime that writes a perf map or a jitdump announces its code through
//! [`jitscribe::Scribe`] as it writes, without knowing.
//!
//! The library stands before the C library's functions by which files are opened, written and closed (`exports/`). Each
//! does what it always did; if its file is a map or a dump, what is new in the file is then read from it (`watch.rs`,
//! `tail.rs`), whoever wrote it and how, and announced (`announce.rs`). For all other files a call costs one comparison
//! more (`span.rs`). Objects that are loaded so that they ask their own libraries first are led here (`deepbind.rs`).
//!
//! # A guest that was not invited
//!
//! - `errno` stays, nothing unwinds into the program, threads that are cancelled are so in the C library (`guest.rs`).
//! - One thread looks at a time. Who comes meanwhile leaves a note and goes on, be it another thread, a signal handler, or
//!   what the scribe itself writes (`latch.rs`).
//! - Memory is not the program's: a signal handler that writes may have interrupted `malloc` (`memory.rs`).
//! - The child of a fork goes on by itself; one of vfork, which has its parent's memory, does nothing (`fork.rs`).
//! - If anything goes wrong, nothing is watched any more, in silence.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "each module that needs none forbids it")]

mod announce;
mod deepbind;
mod exports;
mod file;
mod fork;
mod guest;
mod latch;
mod list;
mod memory;
mod names;
mod poll;
mod prologue;
mod real;
mod span;
mod start;
mod streams;
mod sys;
mod tail;
mod watch;
