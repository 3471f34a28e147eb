//! Decompression of PERF_RECORD_COMPRESSED: all records of a file are one zstd stream.

use std::fmt;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::buffer::Buffer;
use crate::endian::Endian;
use crate::error::{Cause, Error};
use crate::event::{EVENT_HEADER_SIZE, Header};

/// Decompressed bytes held at a time. More than the largest event, so that each fits whole.
const CAPACITY: usize = 1 << 18;

/// The stream's state: an event may begin in one record and end in another.
pub(crate) struct Unpacker {
    decoder: Decoder<'static>,
    /// What of the latest record is still to be decompressed.
    packed: Vec<u8>,
    packed_used: usize,
    /// Whether zstd may hold back output that did not fit.
    full: bool,
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
            out: Buffer::new(CAPACITY),
        })
    }

    /// Takes up a record's compressed bytes; all of the one before must have been unpacked.
    pub(crate) fn feed(&mut self, packed: &[u8]) {
        self.packed.clear();
        self.packed.extend_from_slice(packed);
        self.packed_used = 0;
    }

    /// Makes [`Self::out`] begin with a whole event, if the records so far hold one more.
    /// Gives its size, or 0 when more records are needed.
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
        let written = self.out.refill(|room| {
            let capacity = room.len();
            let mut out = OutBuffer::around(room);
            decoder.run(&mut input, &mut out).map_err(Error::Read)?;
            full = out.pos() == capacity;
            Ok(out.pos())
        });
        let read = input.pos();
        self.packed_used = self.packed_used.saturating_add(read);
        match written {
            Ok(0) if read == 0 && self.packed_used < self.packed.len() => Err(Cause::Zstd),
            Ok(_) => {
                self.full = full;
                Ok(())
            }
            Err(_) => Err(Cause::Zstd),
        }
    }
}
