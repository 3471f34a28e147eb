//! What valgrind's tools write down, with names for addresses that have none.
//!
//! valgrind knows the code that it finds in ELF files. Of other code, such as a JIT's, it writes the
//! address alone: `at 0x4A40044: ???`. What it wrote can be put right afterwards, by whoever knows
//! what was at the address: a [`Namer`]. Each module is one format:
//!
//! * [`text`]: the messages of memcheck, helgrind and DRD, as a person reads them
//! * [`xml`]: the same with `--xml=yes`
//! * [`massif`]: what massif writes, and any tool with `--xtree-memory` into a file `.ms`
//! * [`dhat`]: what DHAT writes
//! * [`cachegrind`]: what cachegrind writes, of which nothing can be named, and how much that is
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
//! All else is copied byte for byte, as it comes: no format is held in memory as a whole. The bytes
//! are taken for hostile: no input makes the reader panic, allocate by a count it read, or take more
//! than linear time.
//!
//! The formats' source is that of valgrind: `coregrind/m_debuginfo/debuginfo.c` (`describe_IP`),
//! `m_errormgr.c`, `massif/ms_main.c`, `dhat/dh_main.c`, `cachegrind/cg_main.c`, and
//! `docs/internals/xml-output-protocol4.txt`.

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
    /// Its name; empty for unknown.
    pub function: Vec<u8>,
    /// The folder of the source file; empty for unknown.
    pub folder: Vec<u8>,
    /// The source file; empty for unknown.
    pub file: Vec<u8>,
    /// The line from 1; 0 for unknown.
    pub line: u32,
    /// The object file that it is of, or what stands for one; empty for unknown.
    pub object: Vec<u8>,
}

/// What is known of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The functions there: the innermost of what was inlined first, the code's own last.
    pub frames: Vec<Frame>,
    /// Whether other code was there at another time, and may have been meant.
    pub doubtful: bool,
}

/// Who knows what was at an address.
pub trait Namer {
    /// What was at `address` of process `pid`, which a format may not tell. Addresses are those that
    /// valgrind prints: of a caller, the last byte of the call.
    fn name(&mut self, pid: Option<u32>, address: u64) -> Option<Rc<Named>>;

    /// A log says who the parent of a process is: what a forked child ran may be its parent's code.
    fn parent(&mut self, pid: u32, parent: u32) {
        let _ = (pid, parent);
    }
}

/// Why a file could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its bytes cannot be had.
    #[error(transparent)]
    Read(io::Error),
    /// What comes of it cannot be written.
    #[error(transparent)]
    Write(io::Error),
    /// It is no such file.
    #[error("at offset {offset:#x}: {cause}")]
    Format {
        /// Where it is not as it should be.
        offset: u64,
        /// What is wrong there.
        cause: &'static str,
    },
}
