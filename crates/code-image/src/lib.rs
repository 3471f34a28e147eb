//! Jitted code as one object file: text at mirrored addresses, symbols, DWARF lines and inlined calls, CFI, build-id.
//!
//! A just-in-time compiler leaves no object file behind, and so the tools that read a recording
//! have nothing to look names, lines, instructions and unwind rules up in. This crate writes that
//! object file for one *arena* (a range of addresses) at one *epoch* (a time in which no address
//! changed its meaning).
//!
//! ```
//! use code_image::{Code, Endian, ImageWriter, Line, Target};
//! use std::io::Cursor;
//!
//! let arena = 0x7f00_0000_0000..0x7f00_0000_2000;
//! let target = Target::new(62 /* EM_X86_64 */, Endian::Little);
//! let mut file = Cursor::new(Vec::new());
//! let mut image = ImageWriter::new(&mut file, target, arena)?;
//! image.add(&Code {
//!     start: 0x7f00_0000_0040,
//!     size: 4,
//!     visible: 0x7f00_0000_0040..0x7f00_0000_0044,
//!     name: b"answer",
//!     bytes: &[0x6a, 42, 0x58, 0xc3],
//!     lines: &[Line { address: 0x7f00_0000_0040, file: b"/src/answer.js", line: 3, column: 9 }],
//!     ..Code::default()
//! })?;
//! let finished = image.finish(|_size| None)?;
//! assert_eq!(finished.text.address, 0x7f00_0000_0000);
//! assert_eq!(finished.text.file_offset, 0x1000);
//! # Ok::<(), code_image::Error>(())
//! ```
//!
//! # The layout
//!
//! The file *mirrors* the arena: for every byte that a process maps, `address - file_offset` is one
//! constant, the load bias, and file offsets equal the ELF's virtual addresses. Text begins at
//! offset `0x1000`. This is what all consumers agree on: one that computes `address - pgoff` per
//! mapping, one that takes a single base per file, and one that goes by program headers. A sparse
//! arena costs nothing, for holes in it are holes in the file.
//!
//! `.eh_frame_hdr` and `.eh_frame` lie above the text, outside every `PT_LOAD`, at an address that
//! the caller of [`ImageWriter::finish`] chooses: unwinders that read a recording look the tables up
//! *by address* in the recorded mappings, so the caller adds one mapping over them in a free place.
//!
//! The build-id is a hash of the content: the same input gives the same file, byte by byte.
//!
//! # What checkers say
//!
//! `readelf` and `llvm-dwarfdump --verify` find nothing. `eu-elflint --gnu-ld` says two things, which
//! are meant so:
//! - `.eh_frame_hdr` and `.eh_frame` have the alloc flag but lie in no loaded segment. A segment over
//!   them would have the image reach across whatever the process has between them and the text, and
//!   readers that reckon with the extent of an image would refuse one of the two. gdb, too, remarks on
//!   it.
//! - `.text` is `NOBITS` where no code brought its bytes. A `PROGBITS` section of zeros would claim
//!   that the code consists of zeros.
//!
//! # What is hostile
//!
//! Names, line entries, inlined calls and above all the bytes of [`EhFrame`] come from other programs. They never
//! cause a panic; what cannot be used is left out and, for unwind info, counted by cause in
//! [`UnwindSummary`].
// What is for images or objects alone is left out piece by piece only where it needs others.
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
#[cfg(feature = "objects")]
mod loadable;
#[cfg(feature = "image")]
mod part;
#[cfg(feature = "image")]
mod place;
mod printable;
#[cfg(feature = "image")]
mod sparse;
mod target;

pub use cfi::UnwindSummary;
pub use code::{Code, EhFrame, Inlined, Line};
#[cfg(feature = "image")]
pub use elf::{Finished, ImageWriter, Mapping, PlacedImage};
pub use elf::{SIGNPOST_SECTION, Symfile, SymfileCode, TAG, TAG_AT, signpost};
pub use entry::{DebugEntry, FrameEntry, frame_entries, push_name, ready_frames, whole_frames};
pub use error::Error;
#[cfg(feature = "objects")]
pub use loadable::{FinishedObject, ObjectFormat, ObjectWriter};
#[cfg(feature = "image")]
pub use part::Part;
pub use target::{Endian, Target};
