//! The events of one file, in the file's order.

use std::ops::Range;

use crate::attrs::Attrs;
use crate::buffer::Buffer;
use crate::endian::{Cursor, Endian};
use crate::error::{Cause, Error};
use crate::event::{Event, Payload};
use crate::event_header::{EVENT_HEADER_SIZE, Header, kind};
use crate::store::Store;
use crate::unpack::Unpacker;

/// Reads a file's data section in large pieces and returns one complete event after another.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) store: Store,
    layout: Layout,
    /// File offset of the first byte in `buffer`.
    at: u64,
    buffer: Buffer,
    /// Bytes to discard before the next event: the current event and its payload.
    pending: u64,
    unpacker: Option<Box<Unpacker>>,
    current: Option<Current>,
    end: SourceEnd,
    /// Whether the events so far are in the file exactly as they are returned, with nothing between them.
    verbatim: bool,
    /// Whether this is true for all of them, once they were read to the end.
    all_verbatim: bool,
}

/// Which part of a file to read, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) endian: Endian,
    pub(crate) start: u64,
    /// Where the data should end.
    pub(crate) end: u64,
    /// Whether the recorder recorded this end; otherwise it was killed before.
    pub(crate) finished: bool,
    /// Whether compressed records are decompressed.
    pub(crate) unpack: bool,
    /// Whether the header records of a pipe are left out.
    pub(crate) hide_header_events: bool,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    offset: u64,
    size: usize,
    unpacked: bool,
    payload: Option<u64>,
}

/// How a source's events ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceEnd {
    NotReached,
    Complete,
    CutOff(u64),
    Damaged(u64, Cause),
}

impl Source {
    pub(crate) fn new(store: Store, layout: Layout, capacity: usize) -> Self {
        Self {
            store,
            layout,
            at: layout.start,
            // The largest event must fit completely.
            buffer: Buffer::new(capacity.max(1 << 17)),
            pending: 0,
            unpacker: None,
            current: None,
            end: SourceEnd::NotReached,
            verbatim: true,
            all_verbatim: false,
        }
    }

    pub(crate) fn restart(&mut self) {
        self.at = self.layout.start;
        self.buffer.clear();
        self.pending = 0;
        self.unpacker = None;
        self.current = None;
        self.end = SourceEnd::NotReached;
        self.verbatim = true;
    }

    /// Ends the events, and returns the range in the file of those that were not returned. `None` if the bytes there
    /// differ from the events, or were not read to their end before.
    pub(crate) fn take_rest(&mut self) -> Option<Range<u64>> {
        if !self.all_verbatim || self.end != SourceEnd::NotReached {
            return None;
        }
        self.drop_pending();
        self.current = None;
        self.end = SourceEnd::Complete;
        Some(self.at..self.layout.end)
    }

    pub(crate) fn end(&self) -> SourceEnd {
        self.end
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The event that [`Self::advance`] reached.
    pub(crate) fn event<'a>(&'a self, attrs: &'a Attrs) -> Option<Event<'a>> {
        let current = self.current?;
        let bytes = match &self.unpacker {
            Some(unpacker) if current.unpacked => unpacker.out.unused(),
            _ => self.buffer.unused(),
        };
        let behind = current.offset.saturating_add(u64::try_from(current.size).unwrap_or_default());
        let payload =
            current.payload.map(|size| Payload { store: &self.store, offset: behind, size });
        Some(Event { offset: current.offset, bytes: bytes.get(..current.size)?, attrs, payload })
    }

    /// Advances to the next event; false at the end, which [`Self::end`] then returns.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        if self.end != SourceEnd::NotReached {
            return Ok(false);
        }
        loop {
            match self.step()? {
                Step::Event => return Ok(true),
                Step::Again => {}
                Step::End(end) => {
                    self.current = None;
                    self.all_verbatim = self.verbatim && end == SourceEnd::Complete;
                    self.end = end;
                    return Ok(false);
                }
            }
        }
    }

    fn step(&mut self) -> Result<Step, Error> {
        let previous = self.current.take();
        if let Some(unpacker) = &mut self.unpacker {
            if let Some(previous) = previous.filter(|previous| previous.unpacked) {
                unpacker.out.consume(previous.size);
            }
            // While a compressed record is being decompressed, it is the pending one.
            let offset = self.at;
            match unpacker.next_event(self.layout.endian) {
                Ok(0) => {}
                Ok(size) => {
                    let header = Header::of(unpacker.out.unused(), self.layout.endian);
                    if has_payload(header.kind) {
                        return Ok(Step::damaged(offset, Cause::PayloadInCompressed));
                    }
                    self.current = Some(Current { offset, size, unpacked: true, payload: None });
                    return Ok(Step::Event);
                }
                Err(cause) => return Ok(Step::damaged(offset, cause)),
            }
        }
        self.drop_pending();
        self.raw_step()
    }

    fn drop_pending(&mut self) {
        let count = std::mem::take(&mut self.pending);
        match usize::try_from(count) {
            Ok(count) if count <= self.buffer.len() => self.buffer.consume(count),
            _ => self.buffer.clear(),
        }
        self.at = self.at.saturating_add(count);
    }

    fn raw_step(&mut self) -> Result<Step, Error> {
        let Layout { endian, end, finished, unpack, hide_header_events, .. } = self.layout;
        let offset = self.at;
        let left = end.saturating_sub(offset).min(self.store.len().saturating_sub(offset));
        if left == 0 {
            let unpacked_rest =
                self.unpacker.as_ref().is_some_and(|unpacker| unpacker.out.len() > 0);
            let whole = finished && end <= self.store.len() && !unpacked_rest;
            return Ok(Step::End(if whole {
                SourceEnd::Complete
            } else {
                SourceEnd::CutOff(offset)
            }));
        }
        if !self.ensure(EVENT_HEADER_SIZE)? {
            return Ok(Step::End(SourceEnd::CutOff(offset)));
        }
        let header = Header::of(self.buffer.unused(), endian);
        let mut size = usize::from(header.size);
        if unpack && header.kind == kind::COMPRESSED2 && self.ensure(COMPRESSED2_FIELDS)? {
            size = size.max(compressed2_size(self.buffer.unused(), endian));
        }
        if size < EVENT_HEADER_SIZE {
            return Ok(Step::damaged(offset, Cause::EventSize(header.size)));
        }
        if !self.ensure(size)? {
            return Ok(Step::End(SourceEnd::CutOff(offset)));
        }
        let length = u64::try_from(size).unwrap_or(u64::MAX);
        let body = self.buffer.unused().get(EVENT_HEADER_SIZE..size).unwrap_or_default();
        if unpack && matches!(header.kind, kind::COMPRESSED | kind::COMPRESSED2) {
            let packed = match packed_bytes(header.kind, body, endian) {
                Some(packed) => packed,
                None => return Ok(Step::damaged(offset, Cause::EventTooShort)),
            };
            if self.unpacker.is_none() {
                self.unpacker = Some(Box::new(Unpacker::new()?));
            }
            if let Some(unpacker) = &mut self.unpacker {
                unpacker.feed(packed);
            }
            self.pending = length;
            self.verbatim = false;
            return Ok(Step::Again);
        }
        let payload = if has_payload(header.kind) {
            let Some(payload) = payload_size(header.kind, body, endian) else {
                return Ok(Step::damaged(offset, Cause::EventTooShort));
            };
            if payload > left.saturating_sub(length) {
                return Ok(Step::End(SourceEnd::CutOff(offset)));
            }
            Some(payload)
        } else {
            None
        };
        self.pending = length.saturating_add(payload.unwrap_or_default());
        self.verbatim &= payload.is_none();
        if hide_header_events && is_header_event(header.kind) {
            self.verbatim = false;
            return Ok(Step::Again);
        }
        self.current = Some(Current { offset, size, unpacked: false, payload });
        Ok(Step::Event)
    }

    /// Fills the buffer until it holds `count` bytes; false if the data ends before.
    fn ensure(&mut self, count: usize) -> Result<bool, Error> {
        while self.buffer.len() < count {
            let held = u64::try_from(self.buffer.len()).unwrap_or(u64::MAX);
            let from = self.at.saturating_add(held);
            let left = usize::try_from(self.layout.end.saturating_sub(from)).unwrap_or(usize::MAX);
            let store = &self.store;
            let read = self.buffer.refill(|space| {
                let want = space.len().min(left);
                store.read_at(space.get_mut(..want).unwrap_or_default(), from)
            })?;
            if read == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

enum Step {
    Event,
    Again,
    End(SourceEnd),
}

impl Step {
    fn damaged(offset: u64, cause: Cause) -> Self {
        Self::End(SourceEnd::Damaged(offset, cause))
    }
}

fn has_payload(event_kind: u32) -> bool {
    matches!(event_kind, kind::AUXTRACE | kind::HEADER_TRACING_DATA)
}

/// Number of bytes behind the event that its size does not include.
fn payload_size(event_kind: u32, body: &[u8], endian: Endian) -> Option<u64> {
    let mut at = Cursor::new(body, endian);
    if event_kind == kind::AUXTRACE {
        return at.u64();
    }
    u64::from(at.u32()?).checked_next_multiple_of(8)
}

/// Whether this is a pipe's event for what a file has in its header and feature sections.
fn is_header_event(event_kind: u32) -> bool {
    matches!(
        event_kind,
        kind::HEADER_ATTR
            | kind::HEADER_EVENT_TYPE
            | kind::HEADER_TRACING_DATA
            | kind::HEADER_BUILD_ID
            | kind::HEADER_FEATURE
    )
}

/// Size of the header and the data size field of a COMPRESSED2.
const COMPRESSED2_FIELDS: usize = 16;

/// Length of a COMPRESSED2 without its padding.
///
/// perf pads it to 8 bytes. If this results in 65,536, the event's size is 0 and the padding is missing (perf 6.16).
/// Data that is larger than one record is not recognized.
fn compressed2_size(event: &[u8], endian: Endian) -> usize {
    let data_size = event.get(EVENT_HEADER_SIZE..).and_then(|body| Cursor::new(body, endian).u64());
    let size = data_size.and_then(|size| usize::try_from(size).ok());
    let size = size.and_then(|size| size.checked_add(COMPRESSED2_FIELDS));
    size.filter(|&size| size <= usize::from(u16::MAX)).unwrap_or_default()
}

/// The zstd bytes of a compressed record.
fn packed_bytes(event_kind: u32, body: &[u8], endian: Endian) -> Option<&[u8]> {
    if event_kind == kind::COMPRESSED {
        return Some(body);
    }
    let mut at = Cursor::new(body, endian);
    let size = at.u64()?;
    at.bytes(size)
}
