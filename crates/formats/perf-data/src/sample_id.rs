//! The trailer of every record that is not a sample (`struct sample_id`).

use crate::attr::{Attr, sample_type};
use crate::endian::{Cursor, Endian};

/// Thread, time and ids, as far as the event's `sample_type` requests them.
///
/// Kernel records have them as a trailer if `sample_id_all` is set; samples contain the same fields among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// Timestamp in nanoseconds of the recording's clock.
    pub time: Option<u64>,
    /// Kernel id of the event: determines which [`Attr`] it belongs to.
    pub id: Option<u64>,
    /// Kernel id of this event instance.
    pub stream_id: Option<u64>,
    /// CPU number.
    pub cpu: Option<u32>,
}

/// The fields of a trailer, in order.
const TRAILER_FIELDS: [u64; 6] = [
    sample_type::TID,
    sample_type::TIME,
    sample_type::ID,
    sample_type::STREAM_ID,
    sample_type::CPU,
    sample_type::IDENTIFIER,
];

impl SampleId {
    /// Length in bytes of the trailers of an event's records.
    pub fn encoded_len(attr: &Attr) -> usize {
        if !attr.sample_id_all() {
            return 0;
        }
        let fields = TRAILER_FIELDS.iter().filter(|&&field| attr.has(field)).count();
        fields.saturating_mul(8)
    }

    /// Decodes the trailer at the end of a record's body. `None` if there is none.
    pub fn decode(body: &[u8], attr: &Attr, endian: Endian) -> Option<Self> {
        let length = Self::encoded_len(attr);
        if length == 0 {
            return None;
        }
        let mut at = Cursor::new(body.get(body.len().checked_sub(length)?..)?, endian);
        let mut found = Self::default();
        for field in TRAILER_FIELDS.into_iter().filter(|&field| attr.has(field)) {
            match field {
                sample_type::TID => (found.pid, found.tid) = some_pair(at.pair()?),
                sample_type::TIME => found.time = Some(at.u64()?),
                sample_type::STREAM_ID => found.stream_id = Some(at.u64()?),
                sample_type::CPU => found.cpu = Some(at.pair()?.0),
                _ => found.id = Some(at.u64()?),
            }
        }
        Some(found)
    }

    /// Encodes the trailer as in the event's other records. Unknown values become zero.
    pub fn encode(&self, attr: &Attr, endian: Endian) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::encoded_len(attr));
        if !attr.sample_id_all() {
            return out;
        }
        let pair = |first: Option<u32>, second: Option<u32>| {
            let (first, second) = (first.unwrap_or_default(), second.unwrap_or_default());
            let mut bytes = [0; 8];
            let (low, high) = bytes.split_at_mut(4);
            low.copy_from_slice(&endian.put_u32(first));
            high.copy_from_slice(&endian.put_u32(second));
            bytes
        };
        let word = |value: Option<u64>| endian.put_u64(value.unwrap_or_default());
        for field in TRAILER_FIELDS.into_iter().filter(|&field| attr.has(field)) {
            out.extend(match field {
                sample_type::TID => pair(self.pid, self.tid),
                sample_type::TIME => word(self.time),
                sample_type::STREAM_ID => word(self.stream_id),
                sample_type::CPU => pair(self.cpu, None),
                _ => word(self.id),
            });
        }
        out
    }
}

fn some_pair((first, second): (u32, u32)) -> (Option<u32>, Option<u32>) {
    (Some(first), Some(second))
}
