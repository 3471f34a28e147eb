//! A stream of a minidump that describes the JIT-compiled code on its stacks.
//!
//! The project's `docs/crash.md` specifies it. It has three writers: [`encode()`] and [`append`] for a crash reporter in another process,
//! and `crash::write_stream` of the crate `jitscribe` for one inside of the process that crashed.
//!
//! ```
//! # fn report(minidump: &[u8], snapshot: &[u8]) -> Result<Vec<u8>, jitscribe_crash_stream::Error> {
//! use jitscribe_crash_stream::{append, encode, stack_words};
//! // `snapshot` is what the crate `code-log` read, while the process was stopped.
//! let stream = encode(snapshot, stack_words(minidump)?, |_address, _buffer| false)?;
//! append(minidump, &stream)
//! # }
//! ```
#![cfg_attr(not(feature = "std"), no_std)]
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

pub mod layout;

#[cfg(feature = "std")]
mod append;
#[cfg(feature = "std")]
mod encode;
#[cfg(feature = "std")]
mod error;
#[cfg(feature = "std")]
mod minidump;
#[cfg(feature = "std")]
mod modules;
#[cfg(feature = "std")]
mod read;
#[cfg(feature = "std")]
mod words;

#[cfg(feature = "std")]
pub use append::append;
#[cfg(feature = "std")]
pub use encode::encode;
#[cfg(feature = "std")]
pub use error::Error;
#[cfg(feature = "std")]
pub use minidump::{find_stream, stack_words};
#[cfg(feature = "std")]
pub use modules::{CODE_MODULE, with_code_modules};
#[cfg(feature = "std")]
pub use read::{CodeBytes, CrashStream};
