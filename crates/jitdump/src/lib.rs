//! The jitdump format: reader, writer and checker.
//!
//! A jitdump is the stream of records in which a JIT compiler says what code it made: where, when,
//! under which name, from which source lines, with which bytes and unwind tables. `perf inject
//! --jit`, samply and hotspot read it. The layout of every record, and what real writers and
//! readers make of it, stands in `docs/format.md` of the project.
//!
//! Each usable alone:
//!
//! * [`Dump`] and [`Records`] hand out the records as they stand in the file, borrowed from it.
//!   Both byte orders, cut-off files, holes and damage are dealt with here.
//! * [`Dump::codes`] is what a consumer wants: one event per code with the debug and unwind
//!   records that belong to it, the quirks of known writers ([`Quirks`]) taken out.
//! * [`DumpFile`] gives the same of a file, without holding all of it in memory.
//! * [`Growing`] gives the same of a file that is being written, as it comes.
//! * [`Writer`] makes records, one write a record.
//!
//! [`check`](check::check) says what is wrong with a dump, what that costs, and how the writer
//! mends it.
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
//! The bytes are taken for hostile: no input makes the reader panic, allocate by a count it read,
//! or take more than linear time.
//!
//! Without the feature `std` (on by default) the crate is `no_std` and needs `alloc`.

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
mod endian;
mod error;
pub mod extension;
mod garbled;
#[cfg(feature = "std")]
mod growing;
mod header;
mod lines;
mod load;
mod quirks;
mod reader;
mod record;
mod resync;
mod sink;
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
pub use record::{Body, RECORD_HEADER_SIZE, Record, RecordId};
#[cfg(feature = "std")]
pub use sink::IoSink;
pub use sink::Sink;
pub use unwinding::{UnwindOrder, UnwindingInfo};
#[cfg(feature = "std")]
pub use window::{DumpFile, OpenError, Outcome, ReadAt};
pub use writer::{ExtendedCode, Inlined, WriteError, Writer, WriterConfig};
