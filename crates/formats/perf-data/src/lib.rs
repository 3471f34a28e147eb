//! perf.data recordings as a stream of events: reader and writer.
//!
//! [`Input`] reads what `perf record` wrote, in any of its forms: a file, a pipe (`-o -`), a zstd-compressed
//! recording (`-z`), a directory (`--threads`), from a machine of either byte order. It returns [`Event`]s: raw
//! bytes, decoded on demand into a [`Record`]. [`Writer`] writes events to a file or a pipe with the attributes and
//! features of the input.
//!
//! ```no_run
//! # fn main() -> Result<(), perf_data::Error> {
//! use perf_data::{Input, Record, Writer};
//!
//! let mut input = Input::open("perf.data".as_ref())?;
//! let out = std::fs::File::create("out.data").map_err(perf_data::Error::Write)?;
//! let mut writer = Writer::file(out, &input)?;
//! while let Some(event) = input.next_event()? {
//!     if let Ok(Record::Mmap(map)) = event.record() {
//!         eprintln!("{:x}+{:x} {}", map.address, map.len, map.filename.escape_ascii());
//!     }
//!     writer.write_event(&event)?;
//! }
//! writer.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! Memory use does not depend on the length of the recording: events are read in pieces, and payloads of AUX area
//! data are copied from file to file. Only attributes and feature sections are held in memory.
//!
//! The content of a recording is not trusted: no input makes this library panic, or allocate more than the file's own
//! size justifies. A recording that is cut off or damaged yields all events before that position, and [`Input::end`]
//! reports where it ended and why.
//!
//! The format is specified by `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h` of Linux.
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

mod attr;
mod attrs;
mod aux_index;
mod bpf;
mod buffer;
mod build_id;
mod endian;
mod error;
mod event;
mod event_header;
mod features;
mod header;
mod input;
mod layout;
mod pipe;
mod record;
mod sample;
mod sample_id;
mod source;
mod store;
mod unpack;
mod writer;

pub use attr::{Attr, sample_type};
pub use attrs::Attrs;
pub use bpf::{BpfFunction, BpfLine};
pub use build_id::BuildId;
pub use endian::Endian;
pub use error::{Cause, End, Error};
pub use event::{Event, Payload};
pub use event_header::{kind, misc};
pub use features::{ClockData, Features, feature};
pub use input::Input;
pub use record::{
    Comm, FileIdentity, InlineBuildId, Ksymbol, Mmap, MmapDetail, Record, Task, TimeCap, TimeConv,
};
pub use sample::{Branch, Branches, Callchain, ChainEntry, Context, Sample, SampleOffsets, Words};
pub use sample_id::SampleId;
pub use writer::{WriteSeek, Writer};
