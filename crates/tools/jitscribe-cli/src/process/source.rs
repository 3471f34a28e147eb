//! The file or memory from which a worker reads a log.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use code_log::{Budget, Head, Source};
use rustix::io::{pread, retry_on_intr};

use crate::files::next_data;
use crate::foreign::Progress;

/// The file of a log, or the memory in which it is mapped.
pub struct LogSource<'f> {
    descriptor: &'f OwnedFd,
    /// The address range of the log, if it is read from memory.
    mapped: Option<Range<u64>>,
    /// Receives progress reports.
    progress: Option<&'f Progress<'f>>,
}

impl<'f> LogSource<'f> {
    /// Chooses the best source. A file that is not a memfd may be truncated at any time, so it is read from memory, where it is
    /// mapped.
    pub fn new(
        file: Option<&'f OwnedFd>,
        memory: Option<&'f OwnedFd>,
        mapped: &Range<u64>,
        is_dump: bool,
    ) -> Option<Self> {
        let from_memory = memory.map(|memory| (memory, Some(mapped.clone())));
        let from_file = file.map(|file| (file, None));
        let (descriptor, mapped) =
            if is_dump { from_memory.or(from_file) } else { from_file.or(from_memory) }?;
        Some(Self { descriptor, mapped, progress: None })
    }

    /// Makes this source report progress while it is read.
    pub fn with_progress(self, progress: &'f Progress<'f>) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// How much of the log is read. The limit is lower for memory, because reading untouched pages allocates them, and they count
    /// as memory of the process.
    pub fn budget(&self) -> Budget {
        let usual = Budget::default();
        if self.mapped.is_some() { Budget { read: 512 << 20, ..usual } } else { usual }
    }

    /// The first bytes of the log, if it is a valid log.
    pub fn head_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; Head::SIZE];
        let count = self.read_at(0, &mut bytes).ok()?;
        bytes.truncate(count);
        Head::parse(&bytes).is_ok().then_some(bytes)
    }
}

impl Source for LogSource<'_> {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        if let Some(progress) = self.progress {
            progress.report();
        }
        let Some(mapped) = &self.mapped else { return read_all(self.descriptor, at, room) };
        let start = mapped.start.saturating_add(at);
        let left = usize::try_from(mapped.end.saturating_sub(start)).unwrap_or(usize::MAX);
        let count = room.len().min(left);
        match room.get_mut(..count) {
            Some(room) if count > 0 => read_all(self.descriptor, start, room),
            _ => Ok(0),
        }
    }

    fn next_data(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        match self.mapped {
            None => next_data(self.descriptor, range),
            Some(_) => Ok(Some(range).filter(|range| !range.is_empty())),
        }
    }
}

/// Reads until the buffer is full or there is no more data.
pub fn read_all(descriptor: &OwnedFd, at: u64, room: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = room.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match retry_on_intr(|| pread(descriptor, &mut *rest, at.saturating_add(done as u64)))? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}
