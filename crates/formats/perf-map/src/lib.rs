//! Perf maps (`perf-PID.map`): reader, resolver, writer and checker.
//!
//! A perf map is the simplest way for a JIT to publish its symbols: a text file `/tmp/perf-PID.map` with one line per
//! code, `ADDRESS SIZE NAME`, both numbers in hexadecimal without a prefix. It has no timestamps. A line says that
//! the code was there at some time, and nothing says when it was unloaded. Only the order of the lines is known.
//! Where two lines claim the same address, [`resolve`] uses the later one.
//!
//! ```
//! let map = b"7f0000001000 40 fib\n7f0000001020 20 fact\n";
//! let pieces = perf_map::resolve(perf_map::entries(map).flatten());
//! let at = |address| perf_map::find(&pieces, address).map(|piece| piece.entry.name);
//! assert_eq!(at(0x7f00_0000_1000), Some(&b"fib"[..]));
//! assert_eq!(at(0x7f00_0000_1020), Some(&b"fact"[..]));
//! assert_eq!(at(0x7f00_0000_1040), None);
//! ```
//!
//! The reader accepts the deviations of real writers: `0x` on either number, upper case, leading zeros, tabs, several
//! blanks, CRLF, a last line without a newline, names with blanks or of any length, empty names, bytes that are not
//! UTF-8. A line that cannot be read yields an [`Error`] with its position, and reading continues behind it.
//! [`check`](check::check) reports what each deviation costs in tools that are less tolerant.
//!
//! The crate is `no_std` with `alloc`, has no `unsafe`, and never panics on any input. Its time is linear in the
//! bytes read, and *n* log *n* in the entries resolved or checked.
#![forbid(unsafe_code)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

extern crate alloc;

pub mod check;
mod error;
mod growing;
mod line;
mod read;
mod resolve;
mod write;

pub use error::{Cause, Error};
pub use growing::Growing;
pub use read::{Entries, Entry, entries};
pub use resolve::{Piece, find, resolve, try_resolve};
pub use write::{push_line, safe_name, safe_pieces};
