//! Decompression of PERF_RECORD_COMPRESSED: all records of a file are one zstd stream.

use std::fmt;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::buffer::Buffer;
use crate::endian::Endian;
use crate::error::{Cause, Error};
use crate::event_header::{EVENT_HEADER_SIZE, Header};

/// Decompressed bytes held at a time. More than the largest event, so that each fits completely.
const CAPACITY: usize = 1 << 18;

/// Limit on decompression: records may expand to this many bytes for each compressed byte, plus `MOST`. A stream of
/// 27 KB could expand to hundreds of megabytes. What perf compresses shrinks to a tenth; copies of 64 KiB of an
/// unchanging stack shrink to a two-thousandth at most.
const MOST_PER_BYTE: u64 = 1 << 12;
const MOST: u64 = 1 << 24;

/// The stream's state: an event may begin in one record and end in another.
pub(crate) struct Unpacker {
    decoder: Decoder<'static>,
    /// The part of the latest record that is not decompressed yet.
    packed: Vec<u8>,
    packed_used: usize,
    /// Whether zstd may hold back output that did not fit.
    full: bool,
    /// How many bytes may still be decompressed.
    left: u64,
    pub(crate) out: Buffer,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").field("out", &self.out.len()).finish_non_exhaustive()
    }
}

impl Unpacker {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            decoder: Decoder::new().map_err(Error::Read)?,
            packed: Vec::new(),
            packed_used: 0,
            full: false,
            left: MOST,
            out: Buffer::new(CAPACITY),
        })
    }

    /// Takes a record's compressed bytes. The previous record must have been decompressed completely.
    pub(crate) fn feed(&mut self, packed: &[u8]) {
        self.packed.clear();
        self.packed.extend_from_slice(packed);
        self.packed_used = 0;
        let length = u64::try_from(packed.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_add(length.saturating_mul(MOST_PER_BYTE));
    }

    /// Makes [`Self::out`] begin with a complete event, if the records so far contain another one. Returns its size,
    /// or 0 if more records are needed.
    pub(crate) fn next_event(&mut self, endian: Endian) -> Result<usize, Cause> {
        loop {
            let have = self.out.unused();
            if have.len() >= EVENT_HEADER_SIZE {
                let size = Header::of(have, endian).size;
                if usize::from(size) < EVENT_HEADER_SIZE {
                    return Err(Cause::EventSize(size));
                }
                if have.len() >= usize::from(size) {
                    return Ok(usize::from(size));
                }
            }
            if !self.full && self.packed_used >= self.packed.len() {
                return Ok(0);
            }
            self.unpack()?;
        }
    }

    fn unpack(&mut self) -> Result<(), Cause> {
        let mut input = InBuffer::around(self.packed.get(self.packed_used..).unwrap_or_default());
        let decoder = &mut self.decoder;
        let mut full = false;
        let written = self.out.refill(|space| {
            let capacity = space.len();
            let mut out = OutBuffer::around(space);
            decoder.run(&mut input, &mut out).map_err(Error::Read)?;
            full = out.pos() == capacity;
            Ok(out.pos())
        });
        let read = input.pos();
        self.packed_used = self.packed_used.saturating_add(read);
        match written {
            Ok(0) if read == 0 && self.packed_used < self.packed.len() => Err(Cause::Zstd),
            Ok(written) => {
                self.full = full;
                let written = u64::try_from(written).unwrap_or(u64::MAX);
                self.left = self.left.checked_sub(written).ok_or(Cause::ZstdBomb)?;
                Ok(())
            }
            Err(_) => Err(Cause::Zstd),
        }
    }
}
