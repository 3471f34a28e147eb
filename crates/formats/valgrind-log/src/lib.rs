//! Output files of Valgrind's tools, with names for addresses that have none.
//!
//! Valgrind knows the code that it finds in ELF files. For other code, such as that of a JIT, it writes only the
//! address: `at 0x4A40044: ???`. This crate adds the names afterwards, from a [`Namer`] that knows what was at the
//! address. Each module handles one format:
//!
//! * [`text`]: the messages of memcheck, helgrind and DRD, as human-readable text
//! * [`xml`]: the same with `--xml=yes`
//! * [`massif`]: files of massif, and files `.ms` that any tool writes with `--xtree-memory`
//! * [`dhat`]: files of DHAT
//! * [`cachegrind`]: files of cachegrind, in which nothing can be named; reports how much is unknown
//!
//! ```
//! use std::rc::Rc;
//! use valgrind_log::{Frame, Named, Namer, text};
//!
//! struct Known;
//! impl Namer for Known {
//!     fn name(&mut self, _pid: Option<u32>, address: u64) -> Option<Rc<Named>> {
//!         let frame = Frame { function: b"fib".to_vec(), ..Frame::default() };
//!         (address == 0x4a40044).then(|| Named { frames: vec![frame], doubtful: false }.into())
//!     }
//! }
//!
//! let (mut out, mut known) = (Vec::new(), Known);
//! let counts = text::rewrite(&b"==7==    at 0x4A40044: ???\n"[..], &mut out, &mut known)?;
//! assert_eq!(out, b"==7==    at 0x4A40044: fib\n");
//! assert_eq!((counts.unknown, counts.named), (1, 1));
//! # Ok::<(), valgrind_log::Error>(())
//! ```
//!
//! Everything else is copied byte for byte as it is read: no file is held in memory as a whole. Input is treated as
//! hostile: no input makes the reader panic, allocate by a count from the input, or take more than linear time.
//!
//! The formats follow Valgrind's source: `coregrind/m_debuginfo/debuginfo.c` (`describe_IP`), `m_errormgr.c`,
//! `massif/ms_main.c`, `dhat/dh_main.c`, `cachegrind/cg_main.c`, and `docs/internals/xml-output-protocol4.txt`.

#![forbid(unsafe_code)]
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

pub mod cachegrind;
mod counts;
pub mod dhat;
mod frame;
pub mod massif;
mod pieces;
mod stack;
pub mod text;
pub mod xml;

use std::io;
use std::rc::Rc;

pub use counts::Counts;

/// One function at one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name; empty if unknown.
    pub function: Vec<u8>,
    /// The folder of the source file; empty if unknown.
    pub folder: Vec<u8>,
    /// The source file; empty if unknown.
    pub file: Vec<u8>,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    /// The object file that contains it, or a substitute; empty if unknown.
    pub object: Vec<u8>,
}

/// What is known about an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The functions at the address: the innermost inlined function first, the code's own last.
    pub frames: Vec<Frame>,
    /// Whether other code was there at another time, to which the address may refer.
    pub doubtful: bool,
}

/// A source of names for addresses.
pub trait Namer {
    /// What was at `address` of process `pid`, if known. `pid` is `None` if the format does not contain it. Addresses
    /// are those that Valgrind prints: for a caller, the last byte of the call.
    fn name(&mut self, pid: Option<u32>, address: u64) -> Option<Rc<Named>>;

    /// Called when a log contains the parent of a process: a forked child may run its parent's code.
    fn parent(&mut self, pid: u32, parent: u32) {
        let _ = (pid, parent);
    }
}

/// Why a file could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Write(io::Error),
    /// It is not a file of this format.
    #[error("at offset {offset:#x}: {cause}")]
    Format {
        /// The position of the error.
        offset: u64,
        /// What is wrong there.
        cause: &'static str,
    },
}
