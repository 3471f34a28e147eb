//! Reading a dump while it is written: each code as soon as its records are complete.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use crate::codes::{Checkpoint, CodeEvent, Codes};
use crate::detect::Detector;
use crate::endian::{to_u64, to_usize};
use crate::error::Error;
use crate::header::{HEADER_SIZE, Header};
use crate::quirks::Quirks;
use crate::reader::{Dump, End};
use crate::record::Prefix;
use crate::record_id::{RECORD_HEADER_SIZE, RecordId};

/// What V8 writes into the header's reserved field. The addresses of its debug entries are 0x40 too high.
const PAD_OF_V8: u32 = 0xdead_beef;
/// The size of a 64-bit ELF header.
const BIAS_OF_V8: u64 = 0x40;

/// A dump that is read while it is written.
///
/// Given the bytes written since the last call, it reports the codes whose records are all complete. Zeros in place
/// of a record are taken for space that will be filled later, by writers that write at offsets or through a mapping.
/// They are not [taken](Self::take).
///
/// ```
/// # use jitdump::{CodeEvent, Endian, Growing, Header, Load, Writer, WriterConfig};
/// # let config = WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 1, flags: 0 };
/// # let mut writer = Writer::new(Vec::new(), &config)?;
/// # let load = Load { pid: 7, tid: 7, vma: 0x1000, code_addr: 0x1000, code_index: 0, name: b"fib",
/// #     code: &[0xc3], padding: &[], missing: 0 };
/// # writer.load(2, &load)?;
/// # let file = writer.into_sink();
/// let mut growing = Growing::new(Header::parse(&file)?);
/// let mut names = Vec::new();
/// let mut read = growing.start() as usize;
/// for end in read..=file.len() {
///     read += growing.take(&file[read..end], |event| {
///         if let Ok(CodeEvent::Load(code)) = event {
///             names.push((end, code.name.to_vec()));
///         }
///     });
/// }
/// assert_eq!(names, [(file.len(), b"fib".to_vec())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Growing {
    header: Header,
    /// The bytes that were taken and are still needed.
    bytes: Vec<u8>,
    /// Offset in the file of the first of `bytes`.
    start: u64,
    checkpoint: Checkpoint,
    /// How many bytes the last record taken lacks.
    missing: u64,
    /// Whether reading is behind damage, where the reader must search for the next record.
    is_resyncing: bool,
    quirks: Quirks,
    /// `Some` until enough was seen to detect the quirks.
    detector: Option<Detector>,
}

impl Growing {
    /// A dump of which only the header has been read.
    #[must_use]
    pub fn new(header: Header) -> Self {
        let start = u64::from(header.total_size.max(HEADER_SIZE));
        let quirks = Quirks::none(&Dump::part(header, &[], start, start));
        let mut growing = Self {
            header,
            bytes: Vec::new(),
            start,
            checkpoint: Checkpoint::at(start),
            missing: 0,
            is_resyncing: false,
            quirks,
            detector: Some(Detector::new(quirks)),
        };
        growing.update_quirks(false);
        growing
    }

    /// Like [`Self::new`], but skips the records before `offset`, where a record must begin.
    #[must_use]
    pub fn from(header: Header, offset: u64) -> Self {
        let mut growing = Self::new(header);
        growing.start = growing.start.max(offset);
        growing.checkpoint = Checkpoint::at(growing.start);
        growing
    }

    /// Offset of the first record to read.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.checkpoint.needs().min(self.start)
    }

    /// How many bytes are held: those of incomplete records, and of records whose code has not come yet.
    #[must_use]
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the last byte that was taken is the last one of a record.
    #[must_use]
    pub fn is_between_records(&self) -> bool {
        self.missing == 0 && !self.is_resyncing
    }

    /// How many of the bytes that come next are complete records. For callers that take only complete records, for
    /// example from a file that is written through a mapping, where a part of a record may change after it was seen.
    #[must_use]
    pub fn whole_records(&self, new: &[u8]) -> usize {
        let mut at = 0_u64;
        while let Some(prefix) =
            new.get(to_usize(at)..).and_then(|rest| Prefix::read(rest, self.header.endian))
        {
            let end = at.saturating_add(u64::from(prefix.total_size));
            if prefix.total_size < RECORD_HEADER_SIZE || end > to_u64(new.len()) {
                break;
            }
            at = end;
        }
        to_usize(at)
    }

    /// Reserves space for `more` bytes, so that [taking](Self::take) them does not abort the process when memory is
    /// exhausted.
    ///
    /// # Errors
    /// The allocation was refused; nothing has changed.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(more)
    }

    /// Takes the bytes that come next in the file, and passes each event that they complete to `each`.
    ///
    /// Returns how many bytes were taken. The rest, the beginning of a record's header or zeros, must be passed again
    /// together with what follows.
    pub fn take(
        &mut self,
        new: &[u8],
        mut each: impl FnMut(Result<CodeEvent<'_>, Error>),
    ) -> usize {
        let (taken, has_complete) = self.complete_records(new);
        self.bytes.extend_from_slice(new.get(..taken).unwrap_or_default());
        if !has_complete {
            return taken;
        }
        let end = self.start.saturating_add(to_u64(self.bytes.len()));
        let dump = Dump::part(self.header, &self.bytes, self.start, end);
        if let Some(detector) = &mut self.detector
            && let Some(checkpoint) = self.checkpoint.try_clone()
        {
            let mut codes = Codes::resume(&dump, self.quirks, checkpoint);
            let is_enough = codes.try_for_each(|event| detector.examine(&event)).is_break();
            self.update_quirks(is_enough);
        }
        let dump = Dump::part(self.header, &self.bytes, self.start, end);
        let checkpoint = core::mem::replace(&mut self.checkpoint, Checkpoint::at(self.start));
        let mut codes = Codes::resume(&dump, self.quirks, checkpoint);
        codes.by_ref().for_each(&mut each);
        match codes.end() {
            Some(End::CutOff { missing, .. }) => self.missing = missing.unwrap_or(0),
            Some(End::Damaged { .. }) => self.is_resyncing = true,
            _ => self.is_resyncing = false,
        }
        self.checkpoint = codes.stop();
        self.discard_read();
        taken
    }

    /// How many of the bytes can be taken, and whether they complete a record.
    fn complete_records(&mut self, new: &[u8]) -> (usize, bool) {
        if self.is_resyncing {
            return (new.len(), true);
        }
        let length = to_u64(new.len());
        let mut at = self.missing.min(length);
        let mut has_complete = self.missing > 0 && at == self.missing;
        self.missing = self.missing.saturating_sub(at);
        while let Some(prefix) =
            new.get(to_usize(at)..).and_then(|rest| Prefix::read(rest, self.header.endian))
        {
            let size = u64::from(prefix.total_size);
            if size == 0 && prefix.id == RecordId::LOAD && prefix.timestamp == 0 {
                break;
            }
            if prefix.total_size < RECORD_HEADER_SIZE {
                return (new.len(), true);
            }
            let end = at.saturating_add(size);
            has_complete |= end <= length;
            self.missing = end.saturating_sub(length);
            at = end.min(length);
        }
        (to_usize(at), has_complete)
    }

    /// Updates the quirks from the codes seen so far.
    fn update_quirks(&mut self, is_enough: bool) {
        let Some(detector) = &self.detector else { return };
        self.quirks = detector.clone().finish();
        if self.quirks.debug_addr_bias == 0
            && !detector.has_enough_debug_info()
            && self.header.pad1 == PAD_OF_V8
        {
            self.quirks.debug_addr_bias = BIAS_OF_V8;
        }
        if is_enough {
            self.detector = None;
        }
    }

    /// Discards what has been read, when it is at least half of what is held.
    fn discard_read(&mut self) {
        let read =
            to_usize(self.checkpoint.needs().saturating_sub(self.start)).min(self.bytes.len());
        if read.saturating_mul(2) >= self.bytes.len() {
            self.bytes.drain(..read);
            self.start = self.start.saturating_add(to_u64(read));
            // The memory for one large record should not be kept forever. It is kept if the allocation is refused:
            // `shrink_to` would abort.
            let enough = self.bytes.len().max(1 << 16);
            let mut smaller = Vec::new();
            if self.bytes.capacity() > enough && smaller.try_reserve_exact(enough).is_ok() {
                smaller.extend_from_slice(&self.bytes);
                self.bytes = smaller;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::made::{entry, load, writer};

    /// A dump of codes with lines, with V8's bias if `bias` is 0x40.
    fn dump(codes: u64, bias: u64) -> Vec<u8> {
        let mut writer = writer();
        for number in 0..codes {
            let address = 0x1000 + number * 0x100;
            let entry = |at: u64, line| entry(address + at + bias, line, b"/src/a.js");
            if number % 3 != 2 {
                writer.debug_info(number, address, [entry(0, 1), entry(30, 2)]).unwrap();
            }
            let name = format!("function {number}");
            let code = alloc::vec![0xcc; 32 + number as usize % 40];
            writer.load(number, &load(address, number, name.as_bytes(), &code)).unwrap();
        }
        writer.into_sink()
    }

    fn shown(event: &Result<CodeEvent<'_>, Error>) -> String {
        match event {
            Ok(CodeEvent::Load(code)) => format!(
                "{:x}+{:x} {:?} {:?} {:?}",
                code.address,
                code.size,
                code.name,
                code.bytes,
                code.lines().collect::<Vec<_>>()
            ),
            other => format!("{other:?}"),
        }
    }

    fn whole(data: &[u8]) -> Vec<String> {
        Dump::parse(data).unwrap().codes().map(|event| shown(&event)).collect()
    }

    /// Reads a file that is written in pieces that end at `cuts`.
    fn grown(data: &[u8], cuts: impl IntoIterator<Item = usize>) -> Vec<String> {
        let mut growing = Growing::new(Header::parse(data).unwrap());
        let (mut events, mut read) = (Vec::new(), to_usize(growing.start()));
        for cut in cuts {
            let cut = cut.min(data.len());
            if cut > read {
                read += growing.take(&data[read..cut], |event| events.push(shown(&event)));
            }
        }
        events
    }

    #[test]
    fn a_large_record_in_small_pieces_is_examined_once() {
        let mut writer = writer();
        writer.load(1, &load(1, 0, b"large", &alloc::vec![0xcc; 1 << 22])).unwrap();
        let data = writer.into_sink();
        // Examining it with each of the 65,536 pieces would take minutes.
        let mut growing = Growing::new(Header::parse(&data).unwrap());
        let pieces = data[to_usize(growing.start())..].chunks(64);
        let mut as_well = growing.clone();
        let (mut codes, mut examined) = (0, 0);
        for piece in pieces {
            let (taken, is_examined) = as_well.complete_records(piece);
            assert_eq!(taken, piece.len());
            examined += usize::from(is_examined);
            assert_eq!(growing.take(piece, |_| codes += 1), piece.len());
        }
        assert_eq!((codes, examined), (1, 1));
    }

    #[test]
    fn zeros_are_space_that_is_filled_later() {
        let data = dump(3, 0);
        let records = Dump::parse(&data).unwrap().records();
        let last = to_usize(records.map(|record| record.unwrap().offset).last().unwrap());
        let mut growing = Growing::new(Header::parse(&data).unwrap());
        let mut space = data.clone();
        space[last..].fill(0);
        space.extend([0; 300]);
        let mut loads = 0;
        let taken = growing.take(&space[40..], |_| loads += 1);
        assert_eq!((40 + taken, loads), (last, 2));
        assert_eq!(growing.take(&data[last..], |_| loads += 1), data.len() - last);
        assert_eq!(loads, 3);
    }

    #[test]
    fn the_end_of_a_record_is_known() {
        let data = dump(6, 0);
        let records = Dump::parse(&data).unwrap().records();
        let ends: Vec<usize> =
            records.map(|record| to_usize(record.unwrap().offset)).chain([data.len()]).collect();
        for piece in [1, 7, 16, 50] {
            let mut growing = Growing::new(Header::parse(&data).unwrap());
            let (mut read, mut seen) = (to_usize(growing.start()), Vec::new());
            for end in (read..=data.len()).step_by(piece).chain([data.len()]) {
                read += growing.take(&data[read..end], |_| ());
                // The beginning of a header is not taken.
                if read == end && growing.is_between_records() {
                    seen.push(end);
                }
            }
            seen.dedup();
            let start = ends[0];
            let stops = |end: &&usize| (**end - start).is_multiple_of(piece) || **end == data.len();
            assert_eq!(seen, ends.iter().filter(stops).copied().collect::<Vec<_>>(), "{piece}");
        }
    }

    proptest! {
        #[test]
        fn pieces_yield_the_same_as_the_whole(
            codes in 0u64..40,
            bias in prop::sample::select(alloc::vec![0u64, 0x40]),
            cuts in prop::collection::vec(0usize..6_000, 0..60),
        ) {
            let data = dump(codes, bias);
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(data.len());
            prop_assert_eq!(grown(&data, cuts), whole(&data));
            prop_assert_eq!(grown(&data, 0..=data.len()), whole(&data));
        }

        #[test]
        fn any_input_is_survived(
            codes in 0u64..20,
            damage in prop::collection::vec((40usize..3_000, any::<u8>()), 0..20),
            cuts in prop::collection::vec(0usize..3_000, 0..20),
        ) {
            let mut data = dump(codes, 0);
            for (at, byte) in damage {
                if let Some(hit) = data.get_mut(at) {
                    *hit = byte;
                }
            }
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(data.len());
            grown(&data, cuts);
        }
    }
}
