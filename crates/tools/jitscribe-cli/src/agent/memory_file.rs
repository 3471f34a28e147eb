//! The memfd of a code log.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use code_log::Source;

use crate::files::next_data;

/// A memfd, which is read without waiting for anyone, also after its process has ended.
#[derive(Debug)]
pub struct MemoryFile(pub File);

impl Source for MemoryFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(at, buffer)
    }

    fn next_data(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        next_data(&self.0, range)
    }
}

impl From<MemoryFile> for OwnedFd {
    fn from(file: MemoryFile) -> Self {
        file.0.into()
    }
}
