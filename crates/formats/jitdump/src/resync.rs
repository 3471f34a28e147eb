//! Finding the next record behind damaged bytes.
//!
//! A process that is killed while it writes through a shared mapping, or a machine that crashes before its pages
//! reach the disk, leaves a hole of zeros. Writers without a lock leave partial records. Records are not aligned, so
//! every offset behind the damage is a candidate. Each candidate is judged in constant time, by the consistency of
//! its fields and by what follows it. The search is therefore linear.

use core::ops::Range;

use crate::endian::{Endian, Fields, to_u64, to_usize};
use crate::extension::tail;
use crate::record::Prefix;
use crate::record_id::{RECORD_HEADER_SIZE, RecordId};

/// How much later than the last record a candidate may be. 2^45 ns are nearly ten hours. Most addresses, which occur
/// in many places where a timestamp might be, are larger numbers.
const TIME_AHEAD: u64 = 1 << 45;

/// How many bytes of padding behind the code of a LOAD are searched for the name's end.
const LOAD_PADDING: u64 = 16;

/// Whether the length in a record's header can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The fields that are present are consistent.
    Plausible,
    /// They contradict one another: the length cannot be trusted.
    Implausible,
}

/// Judges a record by the fields that are present. Some may be missing if the file ends.
pub(crate) fn judge(prefix: Prefix, payload: &[u8], endian: Endian) -> Verdict {
    if prefix.total_size < prefix.id.min_size() {
        return Verdict::Implausible;
    }
    let payload_size = u64::from(prefix.total_size).saturating_sub(u64::from(RECORD_HEADER_SIZE));
    let fits = match prefix.id {
        // Or it has no bytes, and the name extends to the end of the record, as far as the record is present.
        RecordId::LOAD => load_code_size(payload, endian).is_none_or(|code_size| {
            code_size <= payload_size.saturating_sub(41)
                || !payload.get(40..).unwrap_or_default().contains(&0)
        }),
        RecordId::DEBUG_INFO => debug_count(payload, endian)
            .is_none_or(|count| count <= payload_size.saturating_sub(16) / 17),
        RecordId::UNWINDING_INFO => unwinding_sizes(payload, endian)
            .is_none_or(|(all, header)| header <= all && all <= payload_size.saturating_sub(24)),
        _ => true,
    };
    if fits { Verdict::Plausible } else { Verdict::Implausible }
}

fn load_code_size(payload: &[u8], endian: Endian) -> Option<u64> {
    Fields::new(payload.get(24..)?, endian).u64()
}

fn debug_count(payload: &[u8], endian: Endian) -> Option<u64> {
    Fields::new(payload.get(8..)?, endian).u64()
}

fn unwinding_sizes(payload: &[u8], endian: Endian) -> Option<(u64, u64)> {
    let mut fields = Fields::new(payload, endian);
    fields.u64().zip(fields.u64())
}

/// Kinds of records in a code log, whose records are not in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogRecord {
    /// Space that is not in use. It may contain complete old records.
    Filler,
    /// A record that consists of a tail only: the first record of a code, or one about the log itself.
    Tail,
}

impl LogRecord {
    /// The kind of the record at the start of `bytes`, if it is one of these.
    pub(crate) fn at(bytes: &[u8], endian: Endian) -> Option<Self> {
        let mut fields = Fields::new(bytes, endian);
        if RecordId(fields.u32()?) != RecordId::DEBUG_INFO {
            return None;
        }
        let (total_size, _time) = (fields.u32()?, fields.u64()?);
        let (code_addr, nr_entry) = (fields.u64()?, fields.u64()?);
        if nr_entry != 0 {
            return None;
        }
        if total_size >= 40 && fields.u32() == Some(tail::MAGIC) {
            Some(Self::Tail)
        } else if code_addr == 0 && total_size >= 32 && total_size.is_multiple_of(8) {
            Some(Self::Filler)
        } else {
            None
        }
    }
}

/// Whether reading may continue at `rest`, behind a record with `timestamp`: `rest` is the end of the file, a hole,
/// or looks like a record.
pub(crate) fn may_follow(rest: &[u8], endian: Endian, timestamp: u64) -> bool {
    let Some(prefix) = Prefix::read(rest, endian) else { return true };
    let is_hole = prefix.id.0 == 0 && prefix.total_size == 0 && prefix.timestamp == 0;
    is_hole
        || (prefix.total_size >= prefix.id.min_size() && in_time(prefix, Some(timestamp)))
        || LogRecord::at(rest, endian).is_some()
}

/// Whether a record with this timestamp may follow one with `last_timestamp`. Small numbers, which are mostly sizes
/// and indices, are rejected as not near it.
pub(crate) fn in_time(prefix: Prefix, last_timestamp: Option<u64>) -> bool {
    match last_timestamp {
        Some(last) => {
            let earliest = last.saturating_sub(last / 4);
            (earliest..=last.saturating_add(TIME_AHEAD)).contains(&prefix.timestamp)
        }
        None => prefix.timestamp != 0,
    }
}

/// The first offset in `range` where a complete record appears to begin.
///
/// `last_timestamp` is that of the last record read, if there was one.
pub(crate) fn next_record(
    data: &[u8],
    range: Range<u64>,
    endian: Endian,
    last_timestamp: Option<u64>,
) -> Option<u64> {
    let rest = data.get(to_usize(range.start)..)?;
    // Zeros alone are not a record, but the first record behind them may begin with zeros: the four bytes of a LOAD's
    // type, and up to three bytes of its size.
    let zeros = rest.iter().position(|byte| *byte != 0)?;
    let first = range.start.saturating_add(to_u64(zeros).saturating_sub(7));
    (first..range.end).find(|offset| is_record(data, *offset, endian, last_timestamp))
}

fn is_record(data: &[u8], offset: u64, endian: Endian, last_timestamp: Option<u64>) -> bool {
    let Some(rest) = data.get(to_usize(offset)..) else { return false };
    let Some(prefix) = Prefix::read(rest, endian) else { return false };
    if !prefix.id.is_known() || prefix.total_size < prefix.id.min_size() {
        return false;
    }
    let split = rest.split_at_checked(to_usize(u64::from(prefix.total_size)));
    let Some((record, behind)) = split else { return false };
    let payload = record.get(to_usize(u64::from(RECORD_HEADER_SIZE))..).unwrap_or(&[]);
    (in_time(prefix, last_timestamp) || LogRecord::at(rest, endian).is_some())
        && judge(prefix, payload, endian) == Verdict::Plausible
        && shape_fits(prefix, payload, endian)
        && may_follow(behind, endian, prefix.timestamp)
}

/// Checks that [`judge`] does not make, for the types whose fields prove little.
fn shape_fits(prefix: Prefix, payload: &[u8], endian: Endian) -> bool {
    match prefix.id {
        RecordId::LOAD => {
            let end = load_code_size(payload, endian)
                .and_then(|code_size| to_u64(payload.len()).checked_sub(code_size));
            let Some(end) = end else { return false };
            let start = end.saturating_sub(LOAD_PADDING).max(40);
            payload.get(to_usize(start)..to_usize(end)).is_some_and(|bytes| bytes.contains(&0))
        }
        RecordId::MOVE => prefix.total_size == prefix.id.min_size(),
        RecordId::CLOSE => prefix.total_size == RECORD_HEADER_SIZE,
        _ => true,
    }
}
