//! Reads the code log of a process while that process writes it.
//!
//! The log is a jitdump in shared memory. It consists of chunks whose space is reused; `docs/format.md` of the
//! project specifies it. This crate turns it into a [`Snapshot`]: a plain jitdump with the content of the log, in the
//! order of time, which any jitdump reader accepts.
//!
//! A [`Follower`] reads a log again and again, and of a log that it has read before only what has changed.
//!
//! It reads through a [`Source`]: a file descriptor of the process, its memory, or a core file. The process is never
//! stopped, and its bytes are treated as hostile.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let log = [0_u8; 16];
//! # let log = log.as_slice();
//! match code_log::snapshot(&log) {
//!     Ok(snapshot) => println!("{} codes", jitdump::Dump::parse(&snapshot.bytes)?.codes().count()),
//!     Err(error) => println!("{error}"),
//! }
//! # Ok(())
//! # }
//! ```
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

mod budget;
mod chunk;
mod collect;
mod error;
mod follow;
mod followed;
mod head;
mod snapshot;
mod source;
mod words;

pub use budget::Budget;
pub use error::Error;
pub use follow::{Follower, Update};
pub use followed::Followed;
pub use head::Head;
pub use snapshot::{Inherited, Snapshot, snapshot, snapshot_within};
pub use source::Source;
