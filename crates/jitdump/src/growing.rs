//! A dump that is read while it is written: each code as soon as its records are whole.

use alloc::vec::Vec;

use crate::codes::{CodeEvent, Codes, Paused};
use crate::endian::{to_u64, to_usize};
use crate::error::Error;
use crate::header::{HEADER_SIZE, Header};
use crate::quirks::{Detector, Quirks};
use crate::reader::{Dump, End};
use crate::record::{Prefix, RECORD_HEADER_SIZE, RecordId};

/// What V8 writes into the header's reserved field. Its debug entries are 0x40 too high.
const PAD_OF_V8: u32 = 0xdead_beef;
/// The size of a 64-bit ELF header.
const BIAS_OF_V8: u64 = 0x40;

/// A dump that is read while it is written.
///
/// Given what was written since, it tells the codes of which all records are there. Bytes in the
/// place of a record that are zero are taken for room that will be filled later, by writers that
/// write at offsets or through a mapping, and are not [taken](Self::take).
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
    /// What was taken and is still wanted.
    bytes: Vec<u8>,
    /// Offset in the file of the first of `bytes`.
    start: u64,
    paused: Paused,
    /// How many bytes the record lacks that was taken last.
    missing: u64,
    /// Behind damage, where records begin is for the reader to find.
    is_lost: bool,
    quirks: Quirks,
    /// While there is something to be told yet.
    detector: Option<Detector>,
}

impl Growing {
    /// A dump of which nothing but the header has been read.
    #[must_use]
    pub fn new(header: Header) -> Self {
        let start = u64::from(header.total_size.max(HEADER_SIZE));
        let quirks = Quirks::none(&Dump::part(header, &[], start, start));
        let mut growing = Self {
            header,
            bytes: Vec::new(),
            start,
            paused: Paused::at(start),
            missing: 0,
            is_lost: false,
            quirks,
            detector: Some(Detector::new(quirks)),
        };
        growing.settle(false);
        growing
    }

    /// [`Self::new`], where the records before `offset` are not to be read. One must begin there.
    #[must_use]
    pub fn from(header: Header, offset: u64) -> Self {
        let mut growing = Self::new(header);
        growing.start = growing.start.max(offset);
        growing.paused = Paused::at(growing.start);
        growing
    }

    /// Offset of the first record to be read.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.paused.needs().min(self.start)
    }

    /// How many bytes are held: of records that are not whole, and of those whose code has not come.
    #[must_use]
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// How many of the bytes that come next are whole records: for those who take nothing else, as from a file
    /// that is written through a mapping, where a part of a record may change after it was seen.
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

    /// Takes the bytes that come next in the file, and tells `each` what they make whole.
    ///
    /// Returns how many it has taken. The others, the beginning of a record's header or zeros, are to be
    /// given again with what follows them.
    pub fn take(
        &mut self,
        new: &[u8],
        mut each: impl FnMut(Result<CodeEvent<'_>, Error>),
    ) -> usize {
        let (taken, has_whole) = self.whole(new);
        self.bytes.extend_from_slice(new.get(..taken).unwrap_or_default());
        if !has_whole {
            return taken;
        }
        let end = self.start.saturating_add(to_u64(self.bytes.len()));
        let dump = Dump::part(self.header, &self.bytes, self.start, end);
        if let Some(detector) = &mut self.detector {
            let mut codes = Codes::resume(&dump, self.quirks, self.paused.clone());
            let seen_enough = codes.try_for_each(|event| detector.look_at(&event)).is_break();
            self.settle(seen_enough);
        }
        let dump = Dump::part(self.header, &self.bytes, self.start, end);
        let mut codes = Codes::resume(&dump, self.quirks, self.paused.clone());
        codes.by_ref().for_each(&mut each);
        match codes.end() {
            Some(End::CutOff { missing, .. }) => self.missing = missing.unwrap_or(0),
            Some(End::Damaged { .. }) => self.is_lost = true,
            _ => self.is_lost = false,
        }
        self.paused = codes.stop();
        self.forget();
        taken
    }

    /// How many of the bytes can be taken, and whether they make a record whole.
    fn whole(&mut self, new: &[u8]) -> (usize, bool) {
        if self.is_lost {
            return (new.len(), true);
        }
        let length = to_u64(new.len());
        let mut at = self.missing.min(length);
        let mut has_whole = self.missing > 0 && at == self.missing;
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
            has_whole |= end <= length;
            self.missing = end.saturating_sub(length);
            at = end.min(length);
        }
        (to_usize(at), has_whole)
    }

    /// What the codes so far say of their writer.
    fn settle(&mut self, seen_enough: bool) {
        let Some(detector) = &self.detector else { return };
        self.quirks = detector.clone().finish();
        if self.quirks.debug_addr_bias == 0
            && !detector.has_seen_debug_info()
            && self.header.pad1 == PAD_OF_V8
        {
            self.quirks.debug_addr_bias = BIAS_OF_V8;
        }
        if seen_enough {
            self.detector = None;
        }
    }

    /// Lets go of what is read, when it is most of what is held.
    fn forget(&mut self) {
        let read = to_usize(self.paused.needs().saturating_sub(self.start)).min(self.bytes.len());
        if read.saturating_mul(2) >= self.bytes.len() {
            self.bytes.drain(..read);
            self.start = self.start.saturating_add(to_u64(read));
            // One large record should not be paid for ever after.
            self.bytes.shrink_to(self.bytes.len().max(1 << 16));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::debug_info::{DebugEntry, EntryName};
    use crate::endian::Endian;
    use crate::load::Load;
    use crate::writer::{Writer, WriterConfig};

    /// Codes with lines, as V8 writes them where `bias` is 0x40.
    fn dump(codes: u64, bias: u64) -> Vec<u8> {
        let config =
            WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 1, flags: 0 };
        let mut writer = Writer::new(Vec::new(), &config).unwrap();
        for number in 0..codes {
            let address = 0x1000 + number * 0x100;
            let entry = |at: u64, line| DebugEntry {
                addr: address + at + bias,
                line,
                discrim: 1,
                name: EntryName::Path(b"/src/a.js"),
            };
            if number % 3 != 2 {
                writer.debug_info(number, address, [entry(0, 1), entry(30, 2)]).unwrap();
            }
            let name = format!("function {number}");
            let code = alloc::vec![0xcc; 32 + number as usize % 40];
            let load = Load {
                pid: 7,
                tid: 7,
                vma: address,
                code_addr: address,
                code_index: number,
                name: name.as_bytes(),
                code: &code,
                padding: &[],
                missing: 0,
            };
            writer.load(number, &load).unwrap();
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
    fn a_large_record_in_small_pieces_is_looked_at_once() {
        let config =
            WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 1, flags: 0 };
        let mut writer = Writer::new(Vec::new(), &config).unwrap();
        let code = alloc::vec![0xcc; 1 << 22];
        let load = Load {
            pid: 7,
            tid: 7,
            vma: 1,
            code_addr: 1,
            code_index: 0,
            name: b"large",
            code: &code,
            padding: &[],
            missing: 0,
        };
        writer.load(1, &load).unwrap();
        let data = writer.into_sink();
        let started = std::time::Instant::now();
        assert_eq!(grown(&data, (0..=data.len()).step_by(64).chain([data.len()])).len(), 1);
        // Looked at 65,536 times it would take minutes.
        assert!(started.elapsed().as_secs() < 10);
    }

    #[test]
    fn zeros_are_room_that_is_filled_later() {
        let data = dump(3, 0);
        let records = Dump::parse(&data).unwrap().records();
        let last = to_usize(records.map(|record| record.unwrap().offset).last().unwrap());
        let mut growing = Growing::new(Header::parse(&data).unwrap());
        let mut room = data.clone();
        room[last..].fill(0);
        room.extend([0; 300]);
        let mut loads = 0;
        let taken = growing.take(&room[40..], |_| loads += 1);
        assert_eq!((40 + taken, loads), (last, 2));
        assert_eq!(growing.take(&data[last..], |_| loads += 1), data.len() - last);
        assert_eq!(loads, 3);
    }

    proptest! {
        #[test]
        fn pieces_tell_what_the_whole_does(
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
        fn whatever_comes_is_survived(
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
