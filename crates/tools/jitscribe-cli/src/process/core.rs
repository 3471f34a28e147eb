//! Core files: the memory of a process that has ended, and the code logs in it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use code_log::{Head, Source};
use code_timeline::ranges;
use object::{Object, ObjectSegment, ReadCache};

use super::core_notes::{self, CoreNotes};
use super::log_dump::CodeBytes;
use super::logs::inherited_until;
use super::memory::is_anonymous;
use crate::{Error, Result, text};

/// Logs begin at a page boundary.
const PAGE: u64 = 4096;

/// A core file: the memory of a process that has ended, by address.
#[derive(Debug)]
pub struct Core {
    path: PathBuf,
    file: File,
    segments: Vec<Segment>,
    /// The addresses of executable memory, whether the file has its content or not; sorted.
    executable: Vec<Range<u64>>,
    /// The addresses of writable memory that the file has; sorted, and those that touch are one.
    writable: Vec<Range<u64>>,
    notes: CoreNotes,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    /// Its size in the file.
    size: u64,
    offset: u64,
}

/// A log in the memory of a core file.
#[derive(Debug)]
pub struct CoreLog<'c> {
    core: &'c Core,
    address: u64,
    head: Head,
    /// For a log that the process has inherited from its parent: later codes do not belong to this process.
    until: Option<u64>,
}

impl Core {
    /// Opens a core file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        let mut magic = [0; 4];
        let magic_read = file.read_exact_at(&mut magic, 0).map(|()| magic);
        if magic_read.is_ok_and(|magic| magic == [0x28, 0xb5, 0x2f, 0xfd]) {
            return Err(Error::Refused(format!(
                "{}: compressed with zstd; decompress it first: zstd -d -o core {}, or coredumpctl dump -o core",
                text::path(path),
                text::shell_path(path)
            )));
        }
        let (segments, executable, writable, notes) = {
            let cache = ReadCache::new(&file);
            let elf = object::File::parse(&cache).map_err(Error::format(path))?;
            if elf.kind() != object::ObjectKind::Core {
                return Err(Error::Format {
                    path: path.to_owned(),
                    cause: "not a core file".to_owned(),
                });
            }
            let segment = |segment: object::Segment<'_, '_, _>| {
                let (offset, size) = segment.file_range();
                Segment { address: segment.address(), size, offset }
            };
            let executable = elf.segments().filter(|segment| segment.permissions().executable());
            let mut executable: Vec<Range<u64>> =
                executable.map(|it| it.address()..it.address().saturating_add(it.size())).collect();
            executable.sort_by_key(|range| range.start);
            let writable = elf.segments().filter(|it| it.permissions().writable());
            let mut writable: Vec<Range<u64>> = writable
                .map(|it| it.address()..it.address().saturating_add(it.file_range().1))
                .collect();
            writable.sort_by_key(|range| range.start);
            let mut segments: Vec<Segment> = elf.segments().map(segment).collect();
            segments.retain(|segment| segment.size > 0);
            segments.sort_by_key(|segment| segment.address);
            (segments, executable, writable, notes(&elf, &file))
        };
        Ok(Self { path: path.to_owned(), file, segments, executable, writable, notes })
    }

    /// What its notes say about the process.
    pub fn notes(&self) -> &CoreNotes {
        &self.notes
    }

    /// Whether the memory at `address` was executable.
    pub fn is_executable(&self, address: u64) -> bool {
        ranges::contain(&self.executable, address)
    }

    /// The executable memory without a file, sorted by address.
    pub fn anonymous_code(&self) -> impl Iterator<Item = Range<u64>> {
        let of_file = |range: &Range<u64>| {
            let file = self.notes.file_at(range.start);
            file.is_some_and(|file| !is_anonymous(&file.path))
        };
        self.executable.iter().filter(move |range| !of_file(range)).cloned()
    }

    /// The writable memory without a file, as far as the core file has it, sorted by address. Ranges that touch are one.
    pub fn writable(&self) -> impl Iterator<Item = Range<u64>> {
        let of_file = |range: &&Range<u64>| {
            let file = self.notes.file_at(range.start);
            file.is_none_or(|file| is_anonymous(&file.path))
        };
        ranges::merge(self.writable.iter().filter(of_file).cloned(), |_| false).into_iter()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The logs in it.
    pub fn logs(&self) -> Vec<CoreLog<'_>> {
        let starts = self.segments.iter().map(|segment| segment.address);
        let logs = starts.filter(|start| start.is_multiple_of(PAGE)).filter_map(|address| {
            let mut bytes = [0; Head::SIZE];
            let count = self.read(address, &mut bytes).unwrap_or(0);
            let head = Head::parse(bytes.get(..count)?).ok()?;
            Some(CoreLog { core: self, address, head, until: None })
        });
        let mut logs: Vec<CoreLog<'_>> = logs.collect();
        let heads: Vec<Head> = logs.iter().map(|log| log.head).collect();
        for log in &mut logs {
            log.until = inherited_until(&heads, log.address);
        }
        // The process's own first.
        logs.sort_by_key(|log| log.until.is_some());
        logs
    }

    /// Reads up to `buffer.len()` bytes; fewer if the file has no more.
    pub fn read(&self, mut address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = self.segments.partition_point(|segment| segment.address <= address);
            let Some(segment) = at.checked_sub(1).and_then(|at| self.segments.get(at)) else {
                break;
            };
            let inside = address - segment.address;
            let left = segment.size.saturating_sub(inside);
            let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let Some(part) = rest.get_mut(..count).filter(|part| !part.is_empty()) else { break };
            let read = Source::read_at(&self.file, segment.offset.saturating_add(inside), part)?;
            if read == 0 {
                break;
            }
            done += read;
            address = address.saturating_add(read as u64);
        }
        Ok(done)
    }
}

/// What the notes of a core file say.
fn notes<'d, R: object::ReadRef<'d>>(elf: &object::File<'d, R>, file: &File) -> CoreNotes {
    let (words, segments) = match elf {
        object::File::Elf32(elf) => core_notes::note_segments(elf),
        object::File::Elf64(elf) => core_notes::note_segments(elf),
        _ => return CoreNotes::default(),
    };
    let mut notes = CoreNotes::default();
    let mut left = core_notes::LARGEST;
    for (offset, size) in segments {
        // What the file does not have is not allocated.
        let has = file.metadata().map_or(0, |it| it.len()).saturating_sub(offset);
        let size = usize::try_from(size.min(left).min(has)).unwrap_or(0);
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(size).is_err() {
            continue;
        }
        bytes.resize(size, 0);
        if file.read_exact_at(&mut bytes, offset).is_err() {
            continue;
        }
        left = left.saturating_sub(bytes.len() as u64);
        notes.add(words, &bytes);
    }
    notes
}

impl CoreLog<'_> {
    /// Its address in the process.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// For a log that the process has inherited from its parent: later codes do not belong to this process.
    pub fn until(&self) -> Option<u64> {
        self.until
    }
}

impl Source for CoreLog<'_> {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.core.read(self.address.saturating_add(at), buffer)
    }

    fn may_change(&self) -> bool {
        false
    }
}

impl CodeBytes for Core {
    fn code_bytes(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let mut bytes = super::log_dump::code_buffer(&range)?;
        (self.read(range.start, &mut bytes).ok()? == bytes.len()).then_some(bytes)
    }
}
