//! The codes of a file that is not held in memory: a window slides over it.

use alloc::vec::Vec;
use core::ops::ControlFlow;
use std::io;

use crate::code_load::{CodeLoad, CodePlace};
use crate::codes::{CodeEvent, Codes};
use crate::endian::{to_u64, to_usize};
use crate::error::Error;
use crate::extension::LeftOut;
use crate::header::Header;
use crate::quirks::{Detector, Quirks};
use crate::reader::{Dump, End};
use crate::record::RECORD_HEADER_SIZE;

/// How much is read at a time where one record follows another: what a processor's cache holds.
const CHUNK: usize = 1 << 18;
/// How much is read where nothing says that what follows is wanted next.
const PEEK: usize = 1 << 12;

/// Bytes that can be read from any place, such as a file's.
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
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its bytes cannot be had.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is no jitdump.
    #[error(transparent)]
    Format(#[from] Error),
}

/// What is known of a dump when all of it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The codes that its writer left out for want of room.
    pub left_out: LeftOut,
}

/// A jitdump in a file, of which no more is held in memory than a few records take.
///
/// Only behind damage, where the next record must be searched for, is all of the rest held.
#[derive(Debug)]
pub struct DumpFile<R> {
    header: Header,
    window: Window<R>,
}

impl<R: ReadAt> DumpFile<R> {
    /// Reads the header of a file of which the first `len` bytes are to be read: one that is being
    /// written may grow meanwhile.
    ///
    /// # Errors
    /// When it cannot be read; those of [`Header::parse`].
    pub fn open(source: R, len: u64) -> Result<Self, OpenError> {
        Self::open_in_chunks(source, len, CHUNK)
    }

    fn open_in_chunks(source: R, len: u64, chunk: usize) -> Result<Self, OpenError> {
        let mut window = Window { source, len, chunk, bytes: Vec::new(), start: 0, held: 0 };
        window.show(0, chunk)?;
        Ok(Self { header: Header::parse(window.held())?, window })
    }

    /// Reads the same file through a window of its own: for another thread.
    pub fn another(&self) -> DumpFile<&R> {
        let Window { source, len, chunk, .. } = &self.window;
        let window =
            Window { source, len: *len, chunk: *chunk, bytes: Vec::new(), start: 0, held: 0 };
        DumpFile { header: self.header, window }
    }

    /// The file header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What [`Quirks::detect`] finds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn quirks(&mut self) -> io::Result<Quirks> {
        let mut room = self.window.chunk;
        let quirks = loop {
            self.window.show(0, room)?;
            let (quirks, more) = Quirks::of_clocks(&self.window.dump(self.header));
            if !more {
                break quirks;
            }
            room = room.saturating_mul(2);
        };
        let mut detector = Detector::new(quirks);
        self.for_each_code(quirks, |event| detector.look_at(&event))?;
        Ok(detector.finish())
    }

    /// Tells `each` what [`Dump::codes_with`] gives, until it breaks; `None` is returned then.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn for_each_code(
        &mut self,
        quirks: Quirks,
        mut each: impl FnMut(Result<CodeEvent<'_>, Error>) -> ControlFlow<()>,
    ) -> io::Result<Option<Outcome>> {
        self.window.show(0, self.window.chunk)?;
        let mut paused = None;
        loop {
            let dump = self.window.dump(self.header);
            let mut codes = match paused {
                None => dump.codes_with(quirks),
                Some(paused) => Codes::resume(&dump, quirks, paused),
            };
            if codes.by_ref().try_for_each(&mut each).is_break() {
                return Ok(None);
            }
            let outcome = codes.end().map(|end| Outcome { end, left_out: codes.left_out() });
            let Some(more) = codes.pause() else { return Ok(outcome) };
            // What is still wanted must not fill the window.
            let wanted = to_usize(self.window.end().saturating_sub(more.needs()));
            self.window.show(more.needs(), wanted.saturating_mul(2).max(self.window.chunk))?;
            paused = Some(more);
        }
    }

    /// What [`Dump::code_at`] gives.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn code_at(
        &mut self,
        place: &CodePlace,
        quirks: &Quirks,
    ) -> io::Result<Option<CodeLoad<'_>>> {
        let (first, load) = (place.first(), place.load);
        // Where codes are asked for as they stand in the file, the next one will be, too.
        let goes_on = (self.window.start..=self.window.end()).contains(&first);
        let ahead = if goes_on { self.window.chunk } else { PEEK };
        // A load comes behind all else that is told of its code.
        self.window.cover(first, load.saturating_add(u64::from(RECORD_HEADER_SIZE)), ahead)?;
        self.window.cover(first, self.window.dump(self.header).record_end(load), ahead)?;
        Ok(self.window.dump(self.header).code_at(place, quirks))
    }
}

/// The part of a file that is held in memory.
#[derive(Debug)]
struct Window<R> {
    source: R,
    /// Where the file ends, as far as is known.
    len: u64,
    /// How much is read at a time.
    chunk: usize,
    /// Room for the part.
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

    /// Makes the window begin at `from` and hold `room` bytes, or all up to the file's end. What it
    /// held of these before is not read again.
    fn show(&mut self, from: u64, room: usize) -> io::Result<()> {
        let from = from.min(self.len);
        let room = room.min(to_usize(self.len.saturating_sub(from)));
        let begin = from.checked_sub(self.start).map_or(usize::MAX, to_usize).min(self.held);
        self.bytes.copy_within(begin..self.held, 0);
        self.held = self.held.saturating_sub(begin);
        self.start = from;
        if self.bytes.len() < room {
            self.bytes.resize(room, 0);
        }
        while self.held < room {
            let end = self.end();
            let free = self.bytes.get_mut(self.held..room).unwrap_or_default();
            match self.source.read_at(free, end) {
                Ok(0) => self.len = end,
                Ok(read) => self.held = self.held.saturating_add(read).min(room),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.end() >= self.len {
                break;
            }
        }
        Ok(())
    }

    /// Makes the window hold `first..end`, as far as the file does. What must be read is read up to
    /// `ahead` bytes behind `first` at least.
    fn cover(&mut self, first: u64, end: u64, ahead: usize) -> io::Result<()> {
        if self.start <= first && end.min(self.len) <= self.end() {
            return Ok(());
        }
        self.show(first, to_usize(end.saturating_sub(first)).max(ahead))
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
    use crate::extension::FramePointer;
    use crate::lines::LineEntry;
    use crate::load::Load;
    use crate::writer::{ExtendedCode, Inlined, Writer, WriterConfig};

    /// A dump with records of all kinds, some of whose debug info is far from its code.
    fn dump(codes: u64) -> Vec<u8> {
        let config = WriterConfig {
            endian: Endian::Little,
            machine: 62,
            pid: 7,
            timestamp: 1_000,
            flags: 0,
        };
        let mut writer = Writer::new(Vec::new(), &config).unwrap();
        let address = |number: u64| 0x10_0000 + number * 0x100;
        let write_load = |writer: &mut Writer<Vec<u8>>, number: u64| {
            let code = alloc::vec![number as u8; 20 + number as usize * 7 % 90];
            let name = format!("function {number}");
            let load = Load {
                pid: 7,
                tid: 7,
                vma: address(number),
                code_addr: address(number),
                code_index: number,
                name: name.as_bytes(),
                code: &code,
                padding: &[],
                missing: 0,
            };
            writer.load(1_000 + number, &load).unwrap();
        };
        for number in 0..codes {
            // Some with all that a tail can tell, half of them lean, and room behind them.
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
                let entry = |at, line, name| DebugEntry {
                    addr: address(number) + at,
                    line,
                    discrim: 1,
                    name: EntryName::Path(name),
                };
                let entries = [entry(0, 1, &b"/src/a.js"[..]), entry(9, 2, b"/src/b.js")];
                writer.debug_info(1_000 + number, address(number), entries).unwrap();
            }
            // Two threads: the load of one comes behind the debug info of the next.
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

    /// Room not in use, in which an old record stands.
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

    /// All that is told of a dump, and of each code when it is read again.
    fn told(
        quirks: Quirks,
        end: Option<Outcome>,
        events: &[String],
        again: &[Option<String>],
    ) -> String {
        format!("{quirks:?}\n{end:?}\n{events:#?}\n{again:#?}")
    }

    fn in_memory(data: &[u8], order: impl Fn(usize) -> usize) -> Option<String> {
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
        Some(told(quirks, outcome, &events, &again))
    }

    fn in_windows(data: &[u8], chunk: usize, order: impl Fn(usize) -> usize) -> Option<String> {
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
        Some(told(quirks, end.unwrap(), &events, &again))
    }

    #[test]
    fn a_window_stays_small_where_nothing_is_damaged() {
        let mut data = dump(2_000);
        let half = data.len();
        // Much unused room of a log, and as much again behind it.
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
