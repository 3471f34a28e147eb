//! Who was at address A at time T?
//!
//! A JIT writes code over code: the same address belongs to one function now and to another a
//! millisecond later. This crate keeps that history and answers for any address and time.
//!
//! * [`TimelineBuilder`] takes one address space's code events in the order of their time and
//!   [`Timeline`] answers queries in O(log² n), whatever the events were.
//! * [`Processes`] says which address space a process id meant at a time: fork, exec and the reuse
//!   of process ids each begin a new one.
//! * [`epochs`] cuts a timeline into spans of time within which no two pieces of code that were
//!   *seen running* share an address, so that each span can be shown by one object file.
//! * [`ranges`] holds the arithmetic of address ranges that all of them need.
//!
//! Times are nanoseconds of whichever clock the caller chose; addresses are the process's own.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod epochs;
mod index;
mod process;
pub mod ranges;
mod timeline;

pub use epochs::{Epoch, Usage};
pub use process::{LifeId, Processes};
pub use timeline::{Around, CodeId, Piece, Timeline, TimelineBuilder, Who};
