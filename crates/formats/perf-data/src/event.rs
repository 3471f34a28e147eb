//! One event: its raw bytes, and access to the decoded record.

use std::io;

use crate::attr::Attr;
use crate::attrs::Attrs;
use crate::endian::{Cursor, Endian};
use crate::error::{Cause, Error};
use crate::record::Record;
use crate::sample_id::SampleId;
use crate::store::Store;

/// `struct perf_event_header`: type, misc, size.
pub(crate) const EVENT_HEADER_SIZE: usize = 8;

/// Event types (`PERF_RECORD_*`).
pub mod kind {
    /// A mapping without protection and flags.
    pub const MMAP: u32 = 1;
    /// A thread name, also set by `exec`.
    pub const COMM: u32 = 3;
    /// A thread or process ended.
    pub const EXIT: u32 = 4;
    /// A thread or process began.
    pub const FORK: u32 = 7;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// A mapping with protection, flags and the identity of its file.
    pub const MMAP2: u32 = 10;
    /// First type that perf, not the kernel, generates: these records have no trailer.
    pub const USER_TYPE_START: u32 = 64;
    /// Pipe only: an event attribute and its ids.
    pub const HEADER_ATTR: u32 = 64;
    /// Pipe only, obsolete.
    pub const HEADER_EVENT_TYPE: u32 = 65;
    /// Pipe only: tracepoint formats, as a payload.
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// Pipe only: the build-id of a file.
    pub const HEADER_BUILD_ID: u32 = 67;
    /// All events before the previous record of this type can be sorted.
    pub const FINISHED_ROUND: u32 = 68;
    /// AUX area data, as a payload.
    pub const AUXTRACE: u32 = 71;
    /// Name, unit or CPUs of an event.
    pub const EVENT_UPDATE: u32 = 78;
    /// Converts the CPU's counter to perf's time.
    pub const TIME_CONV: u32 = 79;
    /// Pipe only: a feature section.
    pub const HEADER_FEATURE: u32 = 80;
    /// A piece of a zstd stream of events.
    pub const COMPRESSED: u32 = 81;
    /// Like `COMPRESSED`, with its exact length, so that it can be padded to 8 bytes.
    pub const COMPRESSED2: u32 = 83;
}

/// Bits of [`Event::misc`].
pub mod misc {
    /// The kind of code that the record is about (kernel, user, guest…).
    pub const CPU_MODE_MASK: u16 = 7;
    /// User code.
    pub const USER: u16 = 2;
    /// A mapping that is not executable.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// A name set by `exec`.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// A mapping record with its file's build-id instead of the inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
}

/// One event of a recording, borrowed from the reader's buffer until the next event is requested.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    pub(crate) attrs: &'a Attrs,
    pub(crate) payload: Option<Payload<'a>>,
}

impl<'a> Event<'a> {
    /// Offset in its file; for an event that was compressed, the offset of the record that contained it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Header and body as recorded, without the payload.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What follows the header.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(EVENT_HEADER_SIZE..).unwrap_or_default()
    }

    /// The type, see [`kind`].
    pub fn kind(&self) -> u32 {
        Header::of(self.bytes, self.endian()).kind
    }

    /// The misc field, see [`misc`].
    pub fn misc(&self) -> u16 {
        Header::of(self.bytes, self.endian()).misc
    }

    /// Byte order of the recording.
    pub fn endian(&self) -> Endian {
        self.attrs.endian()
    }

    /// The events of the recording.
    pub fn attrs(&self) -> &'a Attrs {
        self.attrs
    }

    /// The data behind the event that its size does not include: AUX area data.
    pub fn payload(&self) -> Option<Payload<'a>> {
        self.payload
    }

    /// The event attribute that this record belongs to, found by the id in the record.
    pub fn attr(&self) -> Option<&'a Attr> {
        self.attrs.of(self.kind(), self.body())
    }

    /// Thread, time and ids: of a sample from its own fields, of other kernel records from their trailer.
    pub fn sample_id(&self) -> Option<SampleId> {
        let (event_kind, body, endian) = (self.kind(), self.body(), self.endian());
        if event_kind >= kind::USER_TYPE_START {
            return None;
        }
        let (attr, layout) = self.attrs.layout_of(event_kind, body)?;
        if event_kind == kind::SAMPLE {
            return layout.split(body, endian).map(|(fixed, _)| fixed.sample_id());
        }
        SampleId::decode(body, attr, endian)
    }

    /// Timestamp in nanoseconds of the recording's clock, if the record has one.
    pub fn timestamp(&self) -> Option<u64> {
        if self.kind() == kind::SAMPLE {
            let (_, layout) = self.attrs.layout_of(kind::SAMPLE, self.body())?;
            return layout.split(self.body(), self.endian())?.0.time();
        }
        self.sample_id().and_then(|id| id.time)
    }

    /// Decodes the record.
    ///
    /// # Errors
    /// [`Cause::EventTooShort`] if the bytes end before the fields of its type.
    pub fn record(&self) -> Result<Record<'a>, Error> {
        Record::decode(self).ok_or(Error::malformed(self.offset, Cause::EventTooShort))
    }
}

/// Decoded `struct perf_event_header`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    pub(crate) size: u16,
}

impl Header {
    /// All zero if `bytes` is too short, which callers rule out.
    pub(crate) fn of(bytes: &[u8], endian: Endian) -> Self {
        let mut at = Cursor::new(bytes, endian);
        let read =
            |at: &mut Cursor<'_>| Some(Self { kind: at.u32()?, misc: at.u16()?, size: at.u16()? });
        read(&mut at).unwrap_or_default()
    }
}

/// Encodes header and body as one event; `None` if it would be larger than an event can be.
pub(crate) fn encode_event(
    endian: Endian,
    event_kind: u32,
    event_misc: u16,
    body: &[&[u8]],
) -> Option<Vec<u8>> {
    let length =
        body.iter().try_fold(EVENT_HEADER_SIZE, |sum, part| sum.checked_add(part.len()))?;
    let size = u16::try_from(length).ok()?;
    let mut out = Vec::with_capacity(length);
    out.extend(endian.put_u32(event_kind));
    out.extend(endian.put_u16(event_misc));
    out.extend(endian.put_u16(size));
    body.iter().for_each(|part| out.extend_from_slice(part));
    Some(out)
}

/// Data behind an event, left in the file until it is copied.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    pub(crate) store: &'a Store,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Payload<'_> {
    /// Length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "an empty payload is still one")]
    pub fn len(&self) -> u64 {
        self.size
    }

    /// Copies the payload piece by piece.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Write`] from either side.
    pub fn copy_to(&self, out: &mut dyn io::Write) -> Result<(), Error> {
        let mut piece = vec![0; 1 << 16];
        let (mut at, mut left) = (self.offset, self.size);
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            let part = piece.get_mut(..want).unwrap_or_default();
            self.store.read_exact_at(part, at)?;
            out.write_all(part).map_err(Error::Write)?;
            let done = u64::try_from(want).unwrap_or(u64::MAX);
            at = at.saturating_add(done);
            left = left.saturating_sub(done);
        }
        Ok(())
    }
}
