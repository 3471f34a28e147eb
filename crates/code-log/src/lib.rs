//! Reads the code log of a process, while that process writes it.
//!
//! The log is a jitdump in shared memory, made of chunks whose room is used anew; `docs/format.md`
//! of the project specifies it. What this crate makes of it is a [`Snapshot`]: a plain jitdump of
//! what the log held, in the order of time, that any reader of jitdumps takes.
//!
//! It reads through [`Source`]: a file descriptor of the process, its memory, a core file. The
//! process is never stopped, and its bytes are taken for hostile.
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

mod chunk;
mod error;
mod head;
mod snapshot;
mod source;
mod words;

pub use error::Error;
pub use head::Head;
pub use snapshot::{Snapshot, snapshot};
pub use source::Source;
