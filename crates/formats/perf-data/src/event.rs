//! One event: its raw bytes, and access to the decoded record.

use std::io;

use crate::attr::Attr;
use crate::attrs::Attrs;
use crate::endian::Endian;
use crate::error::Error;
use crate::event_header::{EVENT_HEADER_SIZE, Header, kind};
use crate::sample_id::SampleId;
use crate::store::Store;

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

    /// The misc field, see [`misc`](crate::misc).
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
