//! JIT-compiled code as one object file: text at mirrored addresses, symbols, DWARF lines and inlined calls, CFI,
//! build-id.
//!
//! A JIT compiler produces no object file. The tools that read a recording therefore have no file in which to look up
//! names, lines, instructions and unwind rules. This crate writes this object file for one *arena* (a range of
//! addresses) in one *epoch* (a time in which no address changed its meaning).
//!
//! ```
//! use code_image::{Endian, ImageWriter, Target, VisibleCode};
//! use jit_code::{Code, Line};
//! use std::io::Cursor;
//!
//! let arena = 0x7f00_0000_0000..0x7f00_0000_2000;
//! let target = Target::new(62 /* EM_X86_64 */, Endian::Little);
//! let mut file = Cursor::new(Vec::new());
//! let mut image = ImageWriter::new(&mut file, target, arena)?;
//! let lines = [Line::new(0, "/src/answer.js", 3).column(9)];
//! let code = Code::new(&[0x6a, 42, 0x58, 0xc3])
//!     .runs_at(0x7f00_0000_0040)
//!     .named("answer")
//!     .lines(&lines);
//! image.add(&VisibleCode::whole(code))?;
//! let finished = image.finish(|_size| None)?;
//! assert_eq!(finished.text.address, 0x7f00_0000_0000);
//! assert_eq!(finished.text.file_offset, 0x1000);
//! # Ok::<(), code_image::Error>(())
//! ```
//!
//! # The layout
//!
//! The file *mirrors* the arena: for every byte that a process maps, `address - file_offset` is the same constant,
//! the load bias, and file offsets equal the ELF's virtual addresses. Text begins at offset `0x1000`. All kinds of
//! consumers agree on this layout: those that compute `address - pgoff` per mapping, those that use a single base per
//! file, and those that use program headers. A sparse arena costs nothing, because holes in it are holes in the file.
//!
//! `.eh_frame_hdr` and `.eh_frame` are above the text, at an address that the caller of [`ImageWriter::finish`]
//! chooses. Unwinders that read a recording look up these tables *by address* in the recorded mappings, so the caller
//! adds one mapping for them at a free address. Their `PT_LOAD` is before that of the text, although its address is
//! higher: libdwfl (hotspot, perf) takes the end of the last `PT_LOAD` for the end of the image, and rejects images that
//! overlap. The process may have other files between the text and the tables.
//!
//! The build-id is a hash of the content: the same input gives the same file, byte for byte.
//!
//! # Results of checkers
//!
//! `readelf`, `llvm-dwarfdump --verify` and `eu-elflint --gnu-ld` report nothing, except that `.text` is `NOBITS` if no
//! code has bytes. This is intended: a `PROGBITS` section of zeros would claim that the code consists of zeros.
//!
//! # Hostile input
//!
//! Names, line entries, inlined calls and above all the bytes of an `.eh_frame` come from other programs. They never
//! cause a panic. What cannot be used is left out and, for unwind info, counted by cause in [`UnwindSummary`].
#![forbid(unsafe_code)]
// Code that only images or objects use is not excluded from builds without these features, unless it depends on
// excluded code.
#![cfg_attr(not(feature = "objects"), allow(dead_code, unused_imports))]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod cfi;
mod code;
mod dwarf;
mod elf;
mod encode;
mod entry;
mod error;
#[cfg(feature = "image")]
mod functions;
#[cfg(feature = "image")]
mod gathered;
#[cfg(feature = "jitdump")]
pub mod jitdump;
#[cfg(feature = "objects")]
mod loadable;
#[cfg(feature = "image")]
mod part;
#[cfg(feature = "image")]
mod place;
mod printable;
mod spare;
#[cfg(feature = "image")]
mod sparse;
mod target;

pub use cfi::UnwindSummary;
pub use code::VisibleCode;
#[cfg(feature = "image")]
pub use elf::{Finished, IMAGE_HEAD, ImageWriter, Mapping, PlacedImage, build_id_of_image};
pub use elf::{LARGEST_GAP, LOG_LOCATOR_SECTION, Symfile, SymfileCode, TAG, TAG_AT, log_locator};
pub use entry::{
    DebugEntry, FrameEntry, frame_entries, push_name, ready_frames, symbol_name, whole_frames,
};
pub use error::Error;
#[cfg(feature = "objects")]
pub use loadable::{FinishedObject, ObjectFormat, ObjectWriter};
#[cfg(feature = "image")]
pub use part::Part;
pub use target::{Endian, Target};
