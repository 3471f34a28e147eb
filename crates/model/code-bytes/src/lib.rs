//! The machine code that was at an address of a process at a time, from a jitdump.
//!
//! A decoder of processor traces (Intel PT, CoreSight) follows the program instruction by instruction, and needs the bytes that the processor
//! executed. A JIT compiler overwrites its code, so that these depend on the time. A jitdump has the bytes of every code,
//! and when it was loaded, moved and (in dumps of this project) unloaded.
//!
//! ```
//! use code_bytes::CodeBytes;
//! use jitdump::{Endian, Load, Writer, WriterConfig};
//!
//! # let config = WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 1, flags: 0 };
//! # let mut writer = Writer::new(Vec::new(), &config)?;
//! # for (time, code, name) in [(10, [0x90, 0xc3], b"old"), (20, [0xcc, 0xc3], b"new")] {
//! #     let load = Load { pid: 7, tid: 7, vma: 0x1000, code_addr: 0x1000, code_index: time, name, code: &code, padding: &[], missing: 0 };
//! #     writer.load(time, &load)?;
//! # }
//! # let dump = writer.into_sink();
//! // A dump in which other code replaces the code at 0x1000 at time 20.
//! let codes = CodeBytes::read(dump.as_slice(), dump.len() as u64)?;
//!
//! let old = codes.at(0x1001, 19).unwrap();
//! assert_eq!((old.name, old.bytes), (&b"old"[..], &[0x90, 0xc3][..]));
//! assert_eq!(codes.at(0x1001, 20).unwrap().name, b"new");
//!
//! let mut buffer = [0; 8];
//! assert_eq!(codes.copy(0x1001, 19, &mut buffer), 1);
//! assert_eq!(buffer[0], 0xc3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are those of the dump: nanoseconds of `CLOCK_MONOTONIC`, or counts of the processor's clock if
//! [`CodeBytes::has_processor_clock`].
#![forbid(unsafe_code)]

mod read;

use std::ops::Range;

use code_timeline::{AddressSpaceId, History, Nearest};

pub use read::Error;

/// All codes of a jitdump, with their bytes.
#[derive(Debug)]
pub struct CodeBytes {
    history: History<Place>,
    /// Names and bytes of all codes.
    content: Vec<u8>,
    has_processor_clock: bool,
    damage: Vec<String>,
}

/// Where name and bytes of a code are in the content. Moved code has the same bytes at each place.
#[derive(Clone, Copy, Debug)]
struct Place {
    name: (usize, usize),
    bytes: (usize, usize),
}

/// A code that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'c> {
    /// Its name, as the runtime gave it: any bytes except NUL, possibly empty.
    pub name: &'c [u8],
    /// Address of its first byte.
    pub address: u64,
    /// Its machine code: all of it, or nothing for a code that was announced without bytes.
    pub bytes: &'c [u8],
    /// The addresses at which this is the answer: less than the code's if a part of it had been overwritten.
    pub addresses: Range<u64>,
    /// The times at which this is the answer for these addresses. The range excludes `u64::MAX`.
    pub times: Range<u64>,
}

impl CodeBytes {
    /// The code at `address` at `time`. Where there was none, the first that came there later: runtimes write the record when
    /// the code is complete, and it may run before that; and what a trace says about time is only as exact as its last
    /// timing packet.
    #[must_use]
    pub fn at(&self, address: u64, time: u64) -> Option<Found<'_>> {
        let around = self.history.timeline(AddressSpaceId::ONLY)?.around(address, time);
        let piece = match around.nearest {
            Nearest::Current(piece) | Nearest::Next(piece) => piece,
            Nearest::Never => return None,
        };
        let code = self.history.code(piece.code);
        let text = |(start, end): (usize, usize)| self.content.get(start..end).unwrap_or_default();
        Some(Found {
            name: text(code.origin.name),
            address: code.address,
            bytes: text(code.origin.bytes),
            addresses: around.addresses,
            times: around.times,
        })
    }

    /// Copies the bytes that were at `address` at `time`, through as many codes as follow one another, and returns how many. 0 if none are known.
    pub fn copy(&self, address: u64, time: u64, buffer: &mut [u8]) -> usize {
        let mut copied = 0;
        while let Some(rest) = buffer.get_mut(copied..).filter(|rest| !rest.is_empty()) {
            let Some(address) = address.checked_add(copied as u64) else { break };
            let Some(found) = self.at(address, time) else { break };
            let bytes = found.from(address);
            let count = bytes.len().min(rest.len());
            if count == 0 {
                break;
            }
            rest[..count].copy_from_slice(&bytes[..count]);
            copied += count;
        }
        copied
    }

    /// Whether times are counts of the processor's clock (x86: TSC) instead of nanoseconds.
    #[must_use]
    pub fn has_processor_clock(&self) -> bool {
        self.has_processor_clock
    }

    /// The number of codes; moved code counts once for each place.
    #[must_use]
    pub fn len(&self) -> usize {
        self.history.len()
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.history.is_empty()
    }

    /// What could not be read, one sentence each with its place in the file; the first few only.
    pub fn damage(&self) -> impl Iterator<Item = &str> {
        self.damage.iter().map(String::as_str)
    }
}

impl<'c> Found<'c> {
    /// The bytes from `address` on, up to where this is no longer the answer. Empty if `address` is not in the code.
    #[must_use]
    pub fn from(&self, address: u64) -> &'c [u8] {
        if !self.addresses.contains(&address) {
            return &[];
        }
        let offset = |address: u64| usize::try_from(address.checked_sub(self.address)?).ok();
        let Some(start) = offset(address) else { return &[] };
        let end = offset(self.addresses.end).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.get(start..end).unwrap_or_default()
    }
}
