//! Unwinds copies of stacks, as profilers record them, by the unwind tables of the files that were mapped.
//!
//! A profiler that does not unwind while a program runs stores the registers and a copy of the stack with each sample (`perf record
//! --call-graph dwarf`). [`unwind`] finds the frames, and says why the stack ends where it does: only a stack that ends at the
//! [bottom](End::is_bottom) is whole. [`Tables`] are the unwind tables of a file, and [`Mappings`] tells which file was at an address at
//! the time of the sample. This crate opens no files.
//!
//! Where no table describes the code, unwinders guess that the frame pointer is one. [`Guess`] chooses what is guessed: what is most
//! likely, or exactly what perf shows. [`unwind_both`] compares the two.
//!
//! Registers other than the stack, frame and instruction pointer are followed as well, because compilers describe some frames by them.
//! x86-64, 64-bit ELF files, little-endian.
//!
//! The tables and the copies are not trusted: no input makes this crate panic, or take more than time and memory in proportion to its
//! size.
#![forbid(unsafe_code)]
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

mod end;
mod expression;
mod registers;
mod stack;
mod tables;
mod walk;

pub use end::End;
pub use registers::{Registers, register};
pub use stack::StackCopy;
pub use tables::{Body, Section, Sections, Tables};
pub use walk::{BothEnds, Guess, Mapped, Mappings, unwind, unwind_both};
