//! The jitdump format: reader, writer and checker.
//!
//! A jitdump is the stream of records in which a JIT compiler describes its code: when and at which address each code
//! was loaded, its name, source lines, bytes and unwind tables. `perf inject --jit`, samply and hotspot read it.
//! `docs/format.md` of the project specifies the layout of every record, and describes what real writers and readers
//! do with it.
//!
//! Each of these can be used alone:
//!
//! * [`Dump`] and [`Records`] return the records as they are in the file, borrowed from it. They handle both byte
//!   orders, truncated files, holes and damage.
//! * [`Dump::codes`] is what a consumer needs: one event per code, with the debug and unwind records that belong to
//!   it. The quirks of known writers ([`Quirks`]) are corrected.
//! * [`DumpFile`] returns the same for a file, without holding all of it in memory.
//! * [`Growing`] returns the same for a file that is being written, as it grows.
//! * [`Writer`] writes records, each with one write.
//!
//! [`check`](check::check) reports what is wrong with a dump, what each finding costs, and how the writer can fix it.
//!
//! ```
//! use jitdump::{CodeEvent, Dump, Endian, Load, Writer, WriterConfig};
//!
//! let config = WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 1, flags: 0 };
//! let mut writer = Writer::new(Vec::new(), &config)?;
//! writer.load(
//!     2,
//!     &Load { pid: 7, tid: 7, vma: 0x1000, code_addr: 0x1000, code_index: 0, name: b"fib",
//!             code: &[0xc3], padding: &[], missing: 0 },
//! )?;
//! let bytes = writer.into_sink();
//!
//! let dump = Dump::parse(&bytes)?;
//! for event in dump.codes() {
//!     if let CodeEvent::Load(code) = event? {
//!         assert_eq!((code.address, code.name), (0x1000, &b"fib"[..]));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Input is treated as hostile: no input makes the reader panic, allocate by a count from the input, or take more
//! than linear time.
//!
//! Without the feature `std` (on by default) the crate is `no_std` and needs `alloc`.
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
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod check;
mod code_load;
mod codes;
mod debug_info;
mod detect;
mod endian;
mod error;
pub mod extension;
mod garbled;
#[cfg(feature = "std")]
mod growing;
mod header;
mod lines;
mod load;
mod logged;
#[cfg(test)]
mod made;
mod quirks;
mod reader;
mod record;
mod record_id;
mod resync;
mod sink;
mod source_positions;
mod unwinding;
#[cfg(feature = "std")]
mod window;
mod writer;

pub use code_load::{CodeLoad, CodePlace, Unwind};
pub use codes::{CodeEvent, CodeMove, Codes};
pub use debug_info::{DebugEntries, DebugEntry, DebugInfo, EntryName};
pub use endian::Endian;
pub use error::{Error, ErrorKind};
#[cfg(feature = "std")]
pub use growing::Growing;
pub use header::{FLAG_ARCH_TIMESTAMP, HEADER_SIZE, Header, MAGIC};
pub use lines::{LineEntry, Lines};
pub use load::{Load, Move};
pub use quirks::{HeaderClock, Quirks, RecordClock};
pub use reader::{Dump, End, Records};
pub use record::{Body, Record};
pub use record_id::{RECORD_HEADER_SIZE, RecordId};
#[cfg(feature = "std")]
pub use sink::IoSink;
pub use sink::Sink;
pub use source_positions::{
    NewPosition, PositionRow, SourcePosition, SourcePositions, SourcePositionsBuilder,
};
pub use unwinding::{UnwindOrder, UnwindingInfo};
#[cfg(feature = "std")]
pub use window::{DumpFile, OpenError, Outcome, ReadAt};
pub use writer::{ExtendedCode, Inlined, WriteError, Writer, WriterConfig, with_source_positions};
