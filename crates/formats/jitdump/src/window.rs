//! The codes of a file that is not held in memory: a window slides over it.

use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;
use std::io;

use crate::code_load::{CodeLoad, CodePlace};
use crate::codes::{Checkpoint, CodeEvent, Codes};
use crate::detect::Detector;
use crate::endian::{to_u64, to_usize};
use crate::error::Error;
use crate::extension::LeftOut;
use crate::header::Header;
use crate::quirks::Quirks;
use crate::reader::{Dump, End};
use crate::record_id::RECORD_HEADER_SIZE;

/// How much is read at a time where records are read in sequence: as much as a processor's cache holds.
const CHUNK: usize = 1 << 18;
/// How much is read where what follows may not be needed next.
const PEEK: usize = 1 << 12;

/// Maximum number of bytes held at a time. A larger record is treated as damage. Behind damage, this much is searched
/// for the next record before it is discarded. A file may claim any size without having it.
const MOST: usize = 1 << 27;

/// A source of bytes with random access, such as a file.
pub trait ReadAt {
    /// Reads bytes at `offset` into `buffer` and returns how many; 0 at the end.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

#[cfg(unix)]
impl ReadAt for std::fs::File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        io::Read::read(&mut self.get(to_usize(offset)..).unwrap_or(&[]), buffer)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buffer, offset)
    }
}

/// Why a file cannot be read as a jitdump.
#[derive(Debug)]
pub enum OpenError {
    /// Its bytes cannot be read.
    Read(io::Error),
    /// It is not a jitdump.
    Format(Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            Self::Format(error) => error.source(),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Format(error)
    }
}

/// What is known about a dump once all of it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The codes that its writer left out for lack of space.
    pub left_out: LeftOut,
}

/// A jitdump in a file, of which only a few records are held in memory at a time.
///
/// More is held only behind damage, where the next record must be searched for: up to 128 MiB at a time.
#[derive(Debug)]
pub struct DumpFile<R> {
    header: Header,
    window: Window<R>,
}

impl<R: ReadAt> DumpFile<R> {
    /// Reads the header of a file. Only its first `len` bytes are used, because a file that is being written may grow
    /// during that time.
    ///
    /// # Errors
    /// When it cannot be read; those of [`Header::parse`].
    pub fn open(source: R, len: u64) -> Result<Self, OpenError> {
        Self::open_in_chunks(source, len, CHUNK)
    }

    fn open_in_chunks(source: R, len: u64, chunk: usize) -> Result<Self, OpenError> {
        Self::open_holding(source, len, chunk, MOST)
    }

    fn open_holding(source: R, len: u64, chunk: usize, most: usize) -> Result<Self, OpenError> {
        let mut window = Window { source, len, chunk, most, bytes: Vec::new(), start: 0, held: 0 };
        window.move_to(0, chunk)?;
        Ok(Self { header: Header::parse(window.held())?, window })
    }

    /// Creates another reader of the same file with its own window, for another thread.
    pub fn another(&self) -> DumpFile<&R> {
        let &Window { ref source, len, chunk, most, .. } = &self.window;
        let window = Window { source, len, chunk, most, bytes: Vec::new(), start: 0, held: 0 };
        DumpFile { header: self.header, window }
    }

    /// The file header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns what [`Quirks::detect`] finds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn quirks(&mut self) -> io::Result<Quirks> {
        let mut size = self.window.chunk;
        let quirks = loop {
            self.window.move_to(0, size)?;
            let (quirks, more) = Quirks::detect_clocks(&self.window.dump(self.header));
            if !more || size >= self.window.most {
                break quirks;
            }
            size = size.saturating_mul(2);
        };
        let mut detector = Detector::new(quirks);
        self.for_each_code(quirks, |event| detector.examine(&event))?;
        Ok(detector.finish())
    }

    /// Passes each item of [`Dump::codes_with`] to `each` until it breaks; then returns `None`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn for_each_code(
        &mut self,
        quirks: Quirks,
        mut each: impl FnMut(Result<CodeEvent<'_>, Error>) -> ControlFlow<()>,
    ) -> io::Result<Option<Outcome>> {
        let outcome = self.each_code(quirks, &mut each);
        self.window.shrink();
        outcome
    }

    fn each_code(
        &mut self,
        quirks: Quirks,
        each: &mut impl FnMut(Result<CodeEvent<'_>, Error>) -> ControlFlow<()>,
    ) -> io::Result<Option<Outcome>> {
        self.window.move_to(0, self.window.chunk)?;
        let mut checkpoint = None;
        // Whether what is held is read as if the file ended there, because no more may be held.
        let mut is_all = false;
        loop {
            let dump = match is_all {
                false => self.window.dump(self.header),
                true => self.window.dump_up_to_its_end(self.header),
            };
            let before = checkpoint.as_ref().map(Checkpoint::offset);
            let mut codes = match checkpoint {
                None => dump.codes_with(quirks),
                Some(checkpoint) => Codes::resume(&dump, quirks, checkpoint),
            };
            let done = match is_all {
                false => codes.by_ref().try_for_each(&mut *each),
                // What follows is judged better once it is read with its actual context.
                true => codes.by_ref().take(1).try_for_each(&mut *each),
            };
            if done.is_break() {
                return Ok(None);
            }
            let outcome = codes.end().map(|end| Outcome { end, left_out: codes.left_out() });
            let more = match is_all {
                false => match codes.pause() {
                    Some(more) => more,
                    None => return Ok(outcome),
                },
                true => {
                    let more = codes.stop();
                    if outcome.is_some() && before.is_some_and(|before| more.offset() <= before) {
                        return Ok(outcome);
                    }
                    more
                }
            };
            // What is still needed must not fill the window.
            let (end, most) = (self.window.end(), self.window.most);
            let wanted = to_usize(end.saturating_sub(more.needs()));
            let continues = end < self.window.len;
            is_all = !is_all && wanted >= most && continues;
            if !is_all {
                let size = wanted.saturating_mul(2).max(self.window.chunk);
                self.window.move_to(more.needs(), size.min(most))?;
            }
            checkpoint = Some(more);
        }
    }

    /// Returns what [`Dump::code_at`] returns.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn code_at(
        &mut self,
        place: &CodePlace,
        quirks: &Quirks,
    ) -> io::Result<Option<CodeLoad<'_>>> {
        let (first, load) = (place.first(), place.load);
        // If codes are requested in the order of the file, the next request will be for the next code.
        let continues = (self.window.start..=self.window.end()).contains(&first);
        let ahead = if continues { self.window.chunk } else { PEEK };
        // A LOAD comes behind all other records of its code.
        self.window.cover(first, load.saturating_add(u64::from(RECORD_HEADER_SIZE)), ahead)?;
        let end = self.window.dump(self.header).record_end(load);
        if to_usize(end.saturating_sub(first)) > self.window.most {
            return Ok(None);
        }
        self.window.cover(first, end, ahead)?;
        Ok(self.window.dump(self.header).code_at(place, quirks))
    }
}

/// The part of a file that is held in memory.
#[derive(Debug)]
struct Window<R> {
    source: R,
    /// Where the file ends, as far as known.
    len: u64,
    /// How much is read at a time.
    chunk: usize,
    /// Maximum number of bytes held.
    most: usize,
    /// The buffer for the part.
    bytes: Vec<u8>,
    /// Offset in the file of the first byte.
    start: u64,
    /// How many bytes are held.
    held: usize,
}

impl<R: ReadAt> Window<R> {
    fn held(&self) -> &[u8] {
        self.bytes.get(..self.held).unwrap_or(&[])
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(to_u64(self.held))
    }

    fn dump(&self, header: Header) -> Dump<'_> {
        Dump::part(header, self.held(), self.start, self.len)
    }

    /// The same, as if the file ended where the window does.
    fn dump_up_to_its_end(&self, header: Header) -> Dump<'_> {
        Dump::part(header, self.held(), self.start, self.end())
    }

    /// Frees a large buffer that was needed behind damage, or for a large record.
    fn shrink(&mut self) {
        if self.bytes.len() > self.chunk.saturating_mul(8) {
            (self.bytes, self.start, self.held) = (Vec::new(), 0, 0);
        }
    }

    /// Moves the window to `from` and fills it with `size` bytes, or all bytes up to the file's end. Bytes that it
    /// already holds are not read again.
    fn move_to(&mut self, from: u64, size: usize) -> io::Result<()> {
        let from = from.min(self.len);
        let size = size.min(to_usize(self.len.saturating_sub(from)));
        let begin = from.checked_sub(self.start).map_or(usize::MAX, to_usize).min(self.held);
        self.bytes.copy_within(begin..self.held, 0);
        self.held = self.held.saturating_sub(begin);
        self.start = from;
        debug_assert!(size <= self.most.max(self.chunk), "{size}");
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
        while self.held < size {
            let end = self.end();
            let free = self.bytes.get_mut(self.held..size).unwrap_or_default();
            match self.source.read_at(free, end) {
                Ok(0) => self.len = end,
                Ok(read) => self.held = self.held.saturating_add(read).min(size),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.end() >= self.len {
                break;
            }
        }
        Ok(())
    }

    /// Makes the window hold `first..end`, as far as the file extends. If it must read, it reads at least up to
    /// `ahead` bytes behind `first`.
    fn cover(&mut self, first: u64, end: u64, ahead: usize) -> io::Result<()> {
        if self.start <= first && end.min(self.len) <= self.end() {
            return Ok(());
        }
        self.move_to(first, to_usize(end.saturating_sub(first)).max(ahead))
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::extension::FramePointer;
    use crate::lines::LineEntry;
    use crate::made::{entry, load, writer};
    use crate::writer::{ExtendedCode, Inlined, Writer};

    /// A dump with records of all kinds, some of whose debug info is far from its code.
    fn dump(codes: u64) -> Vec<u8> {
        let mut writer = writer();
        let address = |number: u64| 0x10_0000 + number * 0x100;
        let write_load = |writer: &mut Writer<Vec<u8>>, number: u64| {
            let code = alloc::vec![number as u8; 20 + number as usize * 7 % 90];
            let name = format!("function {number}");
            let load = load(address(number), number, name.as_bytes(), &code);
            writer.load(1_000 + number, &load).unwrap();
        };
        for number in 0..codes {
            // Some with everything that a tail can contain, half of them without bytes, and unused space behind them.
            if number % 7 > 4 {
                let code = [number as u8 | 1; 24];
                let line = |at, line| LineEntry {
                    address: address(number) + at,
                    file: b"/src/c.js",
                    line,
                    column: 3,
                };
                let extended = ExtendedCode {
                    timestamp: 9_000 - number,
                    pid: 7,
                    tid: 8,
                    address: address(number),
                    size: 24,
                    index: number,
                    name: b"extended",
                    bytes: (number % 2 == 0).then_some(&code[..]),
                    died: (number % 3 == 0).then_some(10_000),
                    tier: Some(b"optimized"),
                    lines: &[line(0, 1), line(9, 2)],
                    ir_lines: &[line(4, 77)],
                    inlined: &[Inlined {
                        name: b"callee".as_slice(),
                        ranges: alloc::vec![address(number) + 2..address(number) + 8],
                        ..Inlined::default()
                    }],
                    eh_frame: &[0; 8],
                    frame_pointer: Some(FramePointer::Prologue),
                    ..ExtendedCode::default()
                };
                writer.extended(&extended).unwrap();
                writer.unknown(0, 2, &filler(48)[16..]).unwrap();
                continue;
            }
            if number % 5 != 4 {
                let at = address(number);
                let entries = [entry(at, 1, b"/src/a.js"), entry(at + 9, 2, b"/src/b.js")];
                writer.debug_info(1_000 + number, at, entries).unwrap();
            }
            // Two threads: the LOAD of one comes behind the debug info of the next.
            match number % 5 {
                1 => {}
                2 => {
                    write_load(&mut writer, number);
                    write_load(&mut writer, number - 1);
                }
                _ => write_load(&mut writer, number),
            }
        }
        writer.left_out(20_000, &LEFT_OUT).unwrap();
        writer.into_sink()
    }

    /// Unused space that contains an old record.
    fn filler(size: u32) -> Vec<u8> {
        let mut filler = alloc::vec![0; to_usize(size.into())];
        filler[0] = 2;
        filler[4..8].copy_from_slice(&size.to_le_bytes());
        filler[32] = 3;
        filler[36] = 16;
        filler[40] = 200;
        filler
    }

    const LEFT_OUT: LeftOut = LeftOut { count: 3, first: 5, last: 9 };

    /// Everything read from a dump, and from each code when it is read again.
    type Description = (Quirks, Option<Outcome>, Vec<String>, Vec<Option<String>>);

    fn in_memory(data: &[u8], order: impl Fn(usize) -> usize) -> Option<Description> {
        let dump = Dump::parse(data).ok()?;
        let quirks = Quirks::detect(&dump);
        let mut codes = dump.codes_with(quirks);
        let (mut events, mut places) = (Vec::new(), Vec::new());
        for event in codes.by_ref() {
            events.push(format!("{event:?}"));
            if let Ok(CodeEvent::Load(load)) = event {
                places.push(load.place());
            }
        }
        places.sort_by_key(|place| order(to_usize(place.load)));
        let again = places.iter().map(|place| dump.code_at(place, &quirks));
        let again: Vec<_> = again.map(|code| code.map(|code| format!("{code:?}"))).collect();
        let outcome = codes.end().map(|end| Outcome { end, left_out: codes.left_out() });
        Some((quirks, outcome, events, again))
    }

    fn in_windows(
        data: &[u8],
        chunk: usize,
        order: impl Fn(usize) -> usize,
    ) -> Option<Description> {
        let mut file = DumpFile::open_in_chunks(data, to_u64(data.len()), chunk).ok()?;
        let quirks = file.quirks().unwrap();
        let (mut events, mut places) = (Vec::new(), Vec::new());
        let end = file.for_each_code(quirks, |event| {
            events.push(format!("{event:?}"));
            if let Ok(CodeEvent::Load(load)) = event {
                places.push(load.place());
            }
            ControlFlow::Continue(())
        });
        places.sort_by_key(|place| order(to_usize(place.load)));
        let again = places.iter().map(|place| {
            let code = file.code_at(place, &quirks).unwrap();
            code.map(|code| format!("{code:?}"))
        });
        let again: Vec<_> = again.collect();
        let mut another = file.another();
        for (place, again) in places.iter().zip(&again).step_by(3) {
            let code = another.code_at(place, &quirks).unwrap();
            assert_eq!(&code.map(|code| format!("{code:?}")), again);
        }
        Some((quirks, end.unwrap(), events, again))
    }

    #[test]
    fn a_window_stays_small_where_nothing_is_damaged() {
        let mut data = dump(2_000);
        let half = data.len();
        // A large unused space of a log, and the same records again behind it.
        data.extend_from_slice(&filler(1 << 20));
        data.extend_from_within(40..half);
        let mut file = DumpFile::open_in_chunks(&*data, to_u64(data.len()), 4096).unwrap();
        let mut loads = 0;
        let quirks = file.quirks().unwrap();
        assert_eq!(quirks, Quirks::detect(&Dump::parse(&data).unwrap()));
        file.for_each_code(quirks, |event| {
            loads += usize::from(matches!(event, Ok(CodeEvent::Load(_))));
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(loads, 4_000);
        assert!(file.window.bytes.len() <= 8192, "{}", file.window.bytes.len());
    }

    /// However much damage there is, and however large a record claims to be.
    #[test]
    fn no_more_is_held_than_is_allowed() {
        let good = dump(300);
        let records = &good[40..];
        let large = {
            let mut large = alloc::vec![7, 0, 0, 0];
            large.extend_from_slice(&u32::MAX.to_le_bytes());
            large.extend_from_slice(&[1; 8]);
            large
        };
        let names = |data: &[u8]| {
            let mut file =
                DumpFile::open_holding(data, to_u64(data.len()), 1 << 12, 1 << 16).unwrap();
            let quirks = Quirks::detect(&Dump::parse(&good).unwrap());
            let (mut names, mut damaged) = (Vec::new(), 0);
            let outcome = file.for_each_code(quirks, |event| {
                match event {
                    Ok(CodeEvent::Load(load)) => names.push(load.name.to_vec()),
                    Ok(_) => {}
                    Err(_) => damaged += 1,
                }
                ControlFlow::Continue(())
            });
            assert!(outcome.is_ok());
            (names, damaged)
        };
        let (all, damaged) = names(&good);
        assert!(all.len() > 200 && damaged == 0);
        for damage in [alloc::vec![0xff; 1 << 18], [large, alloc::vec![0xee; 1 << 18]].concat()] {
            // Before, between and behind good records.
            let data = [&good, &damage[..], records, &damage[..]].concat();
            let (found, damaged) = names(&data);
            assert!(found.starts_with(&all), "what stands before is found");
            assert!(found.ends_with(&all[1..]), "and what stands behind: {}", found.len());
            assert!(damaged >= 1);
        }
        // Zeros alone end the dump.
        let data = [&good, &alloc::vec![0; 1 << 18][..]].concat();
        assert_eq!(names(&data), (all, 0));
    }

    proptest! {
        #[test]
        fn a_window_changes_nothing(
            codes in 0u64..60,
            chunk in 40usize..2000,
            damage in prop::collection::vec((0usize..12_000, 0usize..300, any::<Option<u8>>()), 0..3),
            cut in prop::option::of(0usize..12_000),
            stride in 1usize..1000,
        ) {
            let mut data = dump(codes);
            for (at, len, byte) in damage {
                let end = (at + len).min(data.len());
                if let Some(hit) = data.get_mut(at.max(40)..end) {
                    hit.fill(byte.unwrap_or(0));
                }
            }
            data.truncate(cut.unwrap_or(usize::MAX));
            let order = |offset: usize| offset.wrapping_mul(stride) % 1009;
            prop_assert_eq!(in_windows(&data, chunk, order), in_memory(&data, order));
        }
    }
}
