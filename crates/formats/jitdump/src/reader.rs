//! The raw level: the records of a dump in the order of the file.

use core::iter::FusedIterator;
use core::ops::Range;

use crate::endian::{to_u64, to_usize};
use crate::error::{Error, ErrorKind};
use crate::extension::{ItemBody, LogItem};
use crate::header::{HEADER_SIZE, Header};
use crate::record::{Body, Prefix, Record, parse_body};
use crate::record_id::{RECORD_HEADER_SIZE, RecordId};
use crate::resync::{self, LogRecord, Verdict};

/// A jitdump in memory, complete or not.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    data: &'a [u8],
    header: Header,
    /// Offset in the file of the first byte of `data`.
    start: u64,
    /// Where the file ends, as far as known: at the end of `data` or behind it.
    len: u64,
}

impl<'a> Dump<'a> {
    /// Reads the header. Records are read when requested.
    ///
    /// # Errors
    /// Those of [`Header::parse`].
    pub fn parse(data: &'a [u8]) -> Result<Self, Error> {
        Ok(Self { data, header: Header::parse(data)?, start: 0, len: to_u64(data.len()) })
    }

    /// A part of a file of `len` bytes: `data` is the part at `start`.
    #[cfg(feature = "std")]
    pub(crate) fn part(header: Header, data: &'a [u8], start: u64, len: u64) -> Self {
        Self { data, header, start, len }
    }

    /// Whether the file continues behind `data`.
    fn continues(&self) -> bool {
        self.start.saturating_add(to_u64(self.data.len())) < self.len
    }

    /// The bytes from `offset` on; `None` if `offset` is outside.
    fn at(&self, offset: u64) -> Option<&'a [u8]> {
        self.data.get(to_usize(offset.checked_sub(self.start)?)..)
    }

    /// Where the record at `offset` ends, according to its header.
    #[cfg(feature = "std")]
    pub(crate) fn record_end(&self, offset: u64) -> u64 {
        let prefix = self.at(offset).and_then(|rest| Prefix::read(rest, self.header.endian));
        offset.saturating_add(prefix.map_or(0, |prefix| u64::from(prefix.total_size)))
    }

    /// The record at `offset`, where a record was read before.
    pub(crate) fn record_at(&self, offset: u64) -> Option<Record<'a>> {
        let rest = self.at(offset)?;
        let prefix = Prefix::read(rest, self.header.endian)?;
        let Prefix { total_size, timestamp, .. } = prefix;
        let record = rest.get(..to_usize(u64::from(total_size)))?;
        let body = parse_body(prefix, payload(record), self.header.endian).ok()?;
        Some(Record { offset, total_size, timestamp, body })
    }

    /// The file header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes of the whole file.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The records, from the first on.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        self.records_from(self.first_record())
    }

    /// Where the first record begins.
    pub(crate) fn first_record(&self) -> u64 {
        // A header that claims to be smaller than 40 bytes was never filled in.
        u64::from(self.header.total_size.max(HEADER_SIZE))
    }

    /// The records from `offset` on, where a record must begin. Use this to continue with a dump that has grown, at
    /// the offset in [`End::CutOff`] or [`End::Complete`].
    #[must_use]
    pub fn records_from(&self, offset: u64) -> Records<'a> {
        Records { dump: *self, offset, last_timestamp: None, end: None, needs_more: NeedsMore::No }
    }

    /// The control words, if the dump is a code log.
    #[must_use]
    pub fn log(&self) -> Option<LogItem> {
        let Body::DebugInfo(info) = self.records().next()?.ok()?.body else { return None };
        info.tail()?.items().find_map(|item| match item.body()? {
            ItemBody::Log(log) => Some(log),
            _ => None,
        })
    }
}

/// How a dump ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a complete record.
    Complete {
        /// Length of the file: where the next record would be.
        offset: u64,
    },
    /// Within a record: the file was cut off, or is still being written.
    CutOff {
        /// Where that record begins.
        offset: u64,
        /// How many bytes it lacks; `None` if not even its header is complete.
        missing: Option<u64>,
    },
    /// With zeros: space that the writer reserved and did not use, or that a crash left empty.
    Zeros {
        /// Where the zeros begin.
        offset: u64,
    },
    /// With bytes that are not records.
    Damaged {
        /// Where they begin.
        offset: u64,
    },
}

/// The records of a dump in the order of the file.
///
/// Each damaged place is reported as one error. Reading continues behind it: at the next record if the length of the
/// bad one can be trusted, else at the next place that looks like a record. A dump that is cut off, or still being
/// written, yields its complete records and no error; [`end`](Self::end) returns how it ended.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    dump: Dump<'a>,
    offset: u64,
    last_timestamp: Option<u64>,
    end: Option<End>,
    needs_more: NeedsMore,
}

/// Whether more of the file is needed to decide what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeedsMore {
    No,
    Yes,
    /// It is needed, behind a record that was skipped because it is unused space.
    BehindFiller,
}

impl<'a> Records<'a> {
    /// How the dump ended; `None` until the iterator has ended.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The file header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.dump.header
    }

    pub(crate) fn dump(&self) -> &Dump<'a> {
        &self.dump
    }

    /// Whether the iterator ended because the part of the file ended.
    pub(crate) fn needs_more(&self) -> bool {
        self.needs_more != NeedsMore::No
    }

    /// Whether it ended behind a record that it skipped because it is unused space.
    #[cfg(feature = "std")]
    pub(crate) fn skipped_filler(&self) -> bool {
        self.needs_more == NeedsMore::BehindFiller
    }

    /// The timestamp of the record read last.
    #[cfg(feature = "std")]
    pub(crate) fn last_timestamp(&self) -> Option<u64> {
        self.last_timestamp
    }

    /// The same records, as if a record with this timestamp had just been read.
    #[cfg(feature = "std")]
    pub(crate) fn after_timestamp(self, last_timestamp: Option<u64>) -> Self {
        Self { last_timestamp, ..self }
    }

    /// Where the next record is expected.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn finish(&mut self, end: End) -> Option<Result<Record<'a>, Error>> {
        self.end = Some(end);
        None
    }

    /// Reports the bytes from here on as not a record and moves to the next record, if any.
    fn skip_gap(&mut self, zeros: bool) -> Option<Result<Record<'a>, Error>> {
        let start = self.offset;
        let len = self.len();
        let from = if zeros { start } else { start.saturating_add(1) };
        if let Some(found) = self.find_record(from..len) {
            return Some(Err(self.gap(found, zeros)));
        }
        let rest = self.dump.at(start).unwrap_or(&[]);
        if zeros && rest.iter().all(|byte| *byte == 0) {
            return self.finish(End::Zeros { offset: start });
        }
        self.end = Some(End::Damaged { offset: start });
        Some(Err(self.gap(len, zeros)))
    }

    /// The first whole record that begins in `range`.
    fn find_record(&self, range: Range<u64>) -> Option<u64> {
        let Dump { data, start, header, .. } = self.dump;
        let range = range.start.saturating_sub(start)..range.end.saturating_sub(start);
        resync::next_record(data, range, header.endian, self.last_timestamp)
            .map(|found| found.saturating_add(start))
    }

    /// Where the part of the file ends.
    fn len(&self) -> u64 {
        self.dump.start.saturating_add(to_u64(self.dump.data.len()))
    }

    /// Continues at `resumed`; the error reports what is skipped.
    fn gap(&mut self, resumed: u64, zeros: bool) -> Error {
        let start = self.offset;
        self.offset = resumed;
        Error::new(start, ErrorKind::Gap { len: resumed.saturating_sub(start), zeros })
    }

    /// Handles a record that extends past the end of the file. The file was cut off there, unless complete records
    /// follow the header, or the header is implausible.
    fn cut_off(&mut self, prefix: Prefix, rest: &[u8]) -> Option<Result<Record<'a>, Error>> {
        let endian = self.dump.header.endian;
        let is_header = resync::judge(prefix, payload(rest), endian) == Verdict::Plausible
            && (prefix.id.is_known() || resync::in_time(prefix, self.last_timestamp));
        let offset = self.offset;
        let is_filler = LogRecord::at(rest, endian) == Some(LogRecord::Filler);
        if is_header && prefix.id.is_known() {
            // Without a record before it, its own timestamp decides which timestamps are near.
            self.last_timestamp.get_or_insert(prefix.timestamp);
        }
        if !is_filler
            && (!is_header || self.find_record(offset.saturating_add(1)..self.len()).is_some())
        {
            return self.skip_gap(false);
        }
        let missing = u64::from(prefix.total_size).saturating_sub(to_u64(rest.len()));
        self.finish(End::CutOff { offset, missing: Some(missing) })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.end.is_some() || self.needs_more() {
            return None;
        }
        let offset = self.offset;
        let rest = self.dump.at(offset);
        if let Some((prefix, record)) = rest.and_then(|rest| self.valid_record(rest)) {
            return Some(self.take(prefix, record));
        }
        if self.dump.continues() {
            if let Some(end) = rest.and_then(|rest| self.end_of_filler(rest)) {
                self.offset = end;
                self.needs_more = NeedsMore::BehindFiller;
            } else {
                self.needs_more = NeedsMore::Yes;
            }
            return None;
        }
        let endian = self.dump.header.endian;
        let rest = match rest {
            Some([]) => return self.finish(End::Complete { offset }),
            Some(rest) => rest,
            // The header claims to be larger than the file.
            None => return self.finish(End::CutOff { offset, missing: None }),
        };
        let Some(prefix) = Prefix::read(rest, endian) else {
            return self.finish(End::CutOff { offset, missing: None });
        };
        if prefix.total_size == 0 && prefix.id == RecordId::LOAD && prefix.timestamp == 0 {
            return self.skip_gap(true);
        }
        if prefix.total_size < RECORD_HEADER_SIZE {
            return self.skip_gap(false);
        }
        let size = u64::from(prefix.total_size);
        let Some(record) = rest.get(..to_usize(size)) else { return self.cut_off(prefix, rest) };
        // An unknown type is an extension or garbage. A bad body has a correct or a wrong length. A good record may
        // have been torn by another writer. What follows decides.
        if !prefix.id.is_known() || parse_body(prefix, payload(record), endian).is_err() {
            return self.skip_gap(false);
        }
        self.last_timestamp.get_or_insert(prefix.timestamp);
        let next = offset.saturating_add(size);
        if let Some(inner) = self.find_record(offset.saturating_add(1)..next) {
            return Some(Err(self.gap(inner, false)));
        }
        Some(self.take(prefix, record))
    }
}

impl<'a> Records<'a> {
    /// The record at the start of `rest`, if it is complete and consistent with what is before and behind it. In a
    /// part of a file, the part must include what is behind it.
    fn valid_record(&self, rest: &'a [u8]) -> Option<(Prefix, &'a [u8])> {
        let endian = self.dump.header.endian;
        let prefix = Prefix::read(rest, endian)?;
        let (record, behind) = rest.split_at_checked(to_usize(u64::from(prefix.total_size)))?;
        let is_followed =
            !self.dump.continues() || behind.len() >= to_usize(u64::from(RECORD_HEADER_SIZE));
        let in_time = || {
            prefix.id.is_known()
                || self.last_timestamp.is_none()
                || resync::in_time(prefix, self.last_timestamp)
        };
        let is_valid = prefix.total_size >= RECORD_HEADER_SIZE
            && (LogRecord::at(record, endian) == Some(LogRecord::Filler)
                || (is_followed
                    && in_time()
                    && resync::may_follow(behind, endian, prefix.timestamp)));
        is_valid.then_some((prefix, record))
    }

    /// The end of a code log's unused space, if `rest` begins with such a filler and the filler extends past `rest`.
    /// Its content need not be read. `None` if there is no filler, or the file ends before it does.
    fn end_of_filler(&self, rest: &[u8]) -> Option<u64> {
        let endian = self.dump.header.endian;
        // Enough to distinguish it from a tail.
        let rest = rest.get(..40)?;
        LogRecord::at(rest, endian).filter(|is| *is == LogRecord::Filler)?;
        let size = u64::from(Prefix::read(rest, endian)?.total_size);
        self.offset.checked_add(size).filter(|end| *end <= self.dump.len)
    }

    /// Continues behind `record`.
    fn take(&mut self, prefix: Prefix, record: &'a [u8]) -> Result<Record<'a>, Error> {
        let offset = self.offset;
        let Prefix { total_size, timestamp, .. } = prefix;
        self.offset = offset.saturating_add(u64::from(total_size));
        if LogRecord::at(record, self.dump.header.endian).is_none() {
            self.last_timestamp = Some(timestamp);
        }
        match parse_body(prefix, payload(record), self.dump.header.endian) {
            Ok(body) => Ok(Record { offset, total_size, timestamp, body }),
            Err(kind) => Err(Error::new(offset, kind)),
        }
    }
}

/// The bytes behind a record's header.
fn payload(record: &[u8]) -> &[u8] {
    record.get(to_usize(u64::from(RECORD_HEADER_SIZE))..).unwrap_or(&[])
}

impl FusedIterator for Records<'_> {}
