//! Answers which code was at an address at a given time.
//!
//! A JIT overwrites code with other code: the same address may belong to one function now and to another a
//! millisecond later. This crate keeps this history and answers for any address and time.
//!
//! * [`HistoryBuilder`] takes the events of all processes from their sources (loads, moves, unloads, mappings). It is
//!   the only place that defines what these mean. [`History`] has a timeline for each address space.
//! * [`moved_code`] is the rule for which code a MOVE refers to, for callers with their own tables.
//! * [`TimelineBuilder`] takes the code events of one address space in the order of time. [`Timeline`] answers
//!   queries in O(log² n) for any events.
//! * [`Processes`] determines which address space a process id referred to at a time: fork, exec and the reuse of
//!   process ids each begin a new one.
//! * [`epochs`] cuts a timeline into spans of time. Within each, no two pieces of code that were *seen running* share
//!   an address, so that one object file can show it.
//! * [`ranges`] has the arithmetic of address ranges that all of these need.
//!
//! Times are nanoseconds of a clock that the caller chooses; addresses are those of the process.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod epochs;
mod history;
mod index;
mod moves;
mod piece;
mod process;
pub mod ranges;
mod timeline;

pub use epochs::{Epoch, Usage};
pub use history::{Code, History, HistoryBuilder, LoadId, MoveId, SourceBuilder};
pub use moves::moved_code;
pub use piece::{CodeId, Piece};
pub use process::{AddressSpaceId, GENERATIONS, Inherited, Processes};
pub use timeline::{Around, Nearest, Timeline, TimelineBuilder};
