//! Positions of the fields at fixed offsets in an event's samples.

use crate::attr::{Attr, sample_type};
use crate::endian::Endian;
use crate::sample_id::SampleId;

/// Offsets in a sample's body of the fields before those of variable size.
///
/// Every sample of a long recording is examined several times, so the offsets are computed once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampleLayout {
    identifier: Option<u8>,
    ip: Option<u8>,
    tid: Option<u8>,
    time: Option<u8>,
    address: Option<u8>,
    id: Option<u8>,
    stream_id: Option<u8>,
    cpu: Option<u8>,
    period: Option<u8>,
    /// Total size of these fields in bytes.
    len: u8,
}

impl SampleLayout {
    pub(crate) fn of(attr: &Attr) -> Self {
        let mut layout = Self::default();
        let fields = [
            (sample_type::IDENTIFIER, &mut layout.identifier),
            (sample_type::IP, &mut layout.ip),
            (sample_type::TID, &mut layout.tid),
            (sample_type::TIME, &mut layout.time),
            (sample_type::ADDR, &mut layout.address),
            (sample_type::ID, &mut layout.id),
            (sample_type::STREAM_ID, &mut layout.stream_id),
            (sample_type::CPU, &mut layout.cpu),
            (sample_type::PERIOD, &mut layout.period),
        ];
        let mut len = 0_u8;
        for (_, place) in fields.into_iter().filter(|&(field, _)| attr.has(field)) {
            *place = Some(len);
            len = len.saturating_add(8);
        }
        Self { len, ..layout }
    }

    /// Offset of the instruction pointer; 0 if there is none.
    pub(crate) fn ip_offset(self) -> usize {
        self.ip.map_or(0, usize::from)
    }

    /// Splits `body` into these fields and what is behind them; `None` if the fields are incomplete.
    #[inline]
    pub(crate) fn split(self, body: &[u8], endian: Endian) -> Option<(Fixed<'_>, &[u8])> {
        let (bytes, behind) = body.split_at_checked(self.len.into())?;
        Some((Fixed { bytes, layout: self, endian }, behind))
    }
}

/// The fields of one sample that are at fixed offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed<'a> {
    bytes: &'a [u8],
    layout: SampleLayout,
    endian: Endian,
}

impl Fixed<'_> {
    #[inline]
    pub(crate) fn ip(&self) -> Option<u64> {
        self.word(self.layout.ip)
    }

    #[inline]
    pub(crate) fn time(&self) -> Option<u64> {
        self.word(self.layout.time)
    }

    #[inline]
    pub(crate) fn address(&self) -> Option<u64> {
        self.word(self.layout.address)
    }

    #[inline]
    pub(crate) fn period(&self) -> Option<u64> {
        self.word(self.layout.period)
    }

    #[inline]
    pub(crate) fn sample_id(&self) -> SampleId {
        let (pid, tid) = self.pair(self.layout.tid).unzip();
        SampleId {
            pid,
            tid,
            time: self.time(),
            id: self.word(self.layout.id).or(self.word(self.layout.identifier)),
            stream_id: self.word(self.layout.stream_id),
            cpu: self.pair(self.layout.cpu).map(|(cpu, _)| cpu),
        }
    }

    #[inline]
    fn word(&self, at: Option<u8>) -> Option<u64> {
        let field = self.bytes.get(at?.into()..)?;
        Some(self.endian.u64(*field.first_chunk()?))
    }

    #[inline]
    fn pair(&self, at: Option<u8>) -> Option<(u32, u32)> {
        let (low, high) = self.bytes.get(at?.into()..)?.first_chunk::<8>()?.split_at(4);
        Some((self.endian.u32(*low.first_chunk()?), self.endian.u32(*high.first_chunk()?)))
    }
}
