//! Reads foreign files as a whole, with limits on their size.
//!
//! A file may claim any size: its holes take no disk space, and reading them gives zeros. The limits
//! apply to the data that actually exists.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;

use rustix::fs::seek;
use rustix::io::Errno;

/// The most bytes that are read of a perf map. The largest maps of real runtimes, with a million
/// functions, have a tenth of this.
pub const LARGEST_MAP: u64 = 1 << 30;

/// A line of a perf map that claims a larger code is skipped. (A jitdump contains the bytes.)
pub const LARGEST_CODE: u64 = 1 << 28;

/// The most bytes of holes in a binary file that are read as zeros. The gaps that a code log leaves
/// between its codes are smaller than this. Everything after larger holes is skipped.
const LARGEST_HOLES: u64 = 1 << 28;

/// The content of a file, as far as it was read.
#[derive(Debug, Default)]
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// A message about what was not read; `None` if everything was.
    pub left_out: Option<String>,
}

/// Iterates over the data and the holes of a file, in order, up to its end.
#[derive(Debug)]
pub(super) struct Stretches<'f> {
    file: &'f File,
    at: u64,
    len: u64,
}

/// Part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    Data { from: u64, len: u64 },
    Hole { len: u64 },
}

impl Stretches<'_> {
    pub(super) fn next(&mut self) -> io::Result<Option<Stretch>> {
        let from = self.at;
        if from >= self.len {
            return Ok(None);
        }
        let data = next_data(self.file, from..self.len)?.unwrap_or(self.len..self.len);
        if data.start > from {
            self.at = data.start;
            return Ok(Some(Stretch::Hole { len: data.start - from }));
        }
        self.at = data.end;
        Ok(Some(Stretch::Data { from, len: data.end - from }))
    }
}

pub(super) fn stretches(file: &File) -> io::Result<Stretches<'_>> {
    Ok(Stretches { file, at: 0, len: file.metadata()?.len() })
}

/// Reads a perf map, up to `most` bytes of it. A hole, which is not text, becomes the end of a line.
pub fn text(mut file: &File, most: u64) -> io::Result<Content> {
    let mut content = Content::default();
    let mut holes = 0u64;
    let mut all = stretches(file)?;
    while let Some(stretch) = all.next()? {
        let held = content.bytes.len() as u64;
        match stretch {
            Stretch::Hole { len } => {
                holes = holes.saturating_add(len);
                if content.bytes.last().is_some_and(|&byte| byte != b'\n') {
                    content.bytes.push(b'\n');
                }
            }
            Stretch::Data { .. } if held >= most => {
                content.left_out = Some(format!("larger than {most} bytes; the rest is skipped"));
                return Ok(content);
            }
            Stretch::Data { from, len } => {
                file.seek(SeekFrom::Start(from))?;
                file.take(len.min(most - held)).read_to_end(&mut content.bytes)?;
                if len > most - held {
                    content.left_out =
                        Some(format!("larger than {most} bytes; the rest is skipped"));
                    return Ok(content);
                }
            }
        }
    }
    if holes > 0 {
        content.left_out = Some(format!("{holes} bytes of it are holes, which contain no text"));
    }
    Ok(content)
}

/// Reads a text file in parts, up to the first hole, which is not text: reading it fails.
#[derive(Debug)]
pub struct TextReader<'f> {
    file: &'f File,
    stretches: Stretches<'f>,
    /// The part that is being read.
    left: std::ops::Range<u64>,
}

impl<'f> TextReader<'f> {
    /// Reads the file from its beginning.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(file: &'f File) -> io::Result<Self> {
        Ok(Self { file, stretches: stretches(file)?, left: 0..0 })
    }
}

impl Read for TextReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left.is_empty() {
            match self.stretches.next()? {
                Some(Stretch::Data { from, len }) => self.left = from..from + len,
                Some(Stretch::Hole { .. }) => return Err(holes()),
                None => return Ok(0),
            }
        }
        let most = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let count =
            std::os::unix::fs::FileExt::read_at(self.file, &mut buffer[..most], self.left.start)?;
        self.left.start += count as u64;
        if count == 0 {
            // It has become shorter.
            self.left = 0..0;
            return Ok(0);
        }
        Ok(count)
    }
}

fn holes() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file has holes, which contain no text")
}

/// Reads a file of any kind, with holes as zeros unless they are too large.
pub fn binary(mut file: &File) -> io::Result<Content> {
    let mut content = Content::default();
    if !file.metadata()?.is_file() {
        file.read_to_end(&mut content.bytes)?;
        return Ok(content);
    }
    let mut holes = 0u64;
    let mut all = stretches(file)?;
    while let Some(stretch) = all.next()? {
        match stretch {
            Stretch::Hole { len } => {
                let left = LARGEST_HOLES - holes;
                let zeros = len.min(left);
                holes += zeros;
                let held = content.bytes.len() + usize::try_from(zeros).unwrap_or(usize::MAX);
                content.bytes.resize(held, 0);
                if len > left {
                    content.left_out = Some(format!(
                        "skipped from offset {held:#x} on: the holes before that exceed \
                         {LARGEST_HOLES} bytes"
                    ));
                    return Ok(content);
                }
            }
            Stretch::Data { from, len } => {
                file.seek(SeekFrom::Start(from))?;
                file.take(len).read_to_end(&mut content.bytes)?;
            }
        }
    }
    Ok(content)
}

/// The next part of a file in this range that is not a hole; the whole range if the file system does not support holes.
///
/// # Errors
/// The system's error.
pub fn next_data(
    file: impl AsFd,
    range: std::ops::Range<u64>,
) -> io::Result<Option<std::ops::Range<u64>>> {
    if range.is_empty() {
        return Ok(None);
    }
    let start = match seek(&file, rustix::fs::SeekFrom::Data(range.start)) {
        // A file system that a user serves may return an offset before the requested one.
        Ok(start) if start < range.end => start.max(range.start),
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(range)),
        Err(error) => return Err(error.into()),
    };
    let end = seek(&file, rustix::fs::SeekFrom::Hole(start)).unwrap_or(range.end).min(range.end);
    Ok(Some(start..end.max(start + 1)))
}

/// The size of a file's data on disk. Holes do not count.
pub fn size_on_disk(file: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    file.blocks().saturating_mul(512).min(file.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn sparse(data: &[(u64, &[u8])], len: u64) -> File {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(len).expect("room for a hole");
        for (at, bytes) in data {
            file.write_all_at(bytes, *at).expect("a write");
        }
        file
    }

    #[test]
    fn holes_end_a_line_and_are_reported() {
        let file = sparse(&[(0, b"10 4 a"), (64 * MIB, b"20 4 b\n")], 1 << 36);
        let content = text(&file, LARGEST_MAP).expect("a reading");
        assert!(content.left_out.is_some_and(|told| told.contains("are holes")));
        // A file has at least one block, the rest of it zeros.
        assert!(content.bytes.len() < 1 << 20, "{}", content.bytes.len());
        let names: Vec<_> =
            perf_map::entries(&content.bytes).flatten().map(|e| e.address).collect();
        assert!(names.contains(&0x20), "{names:x?}");
        assert!(size_on_disk(&file.metadata().expect("a size")) < MIB);
    }

    #[test]
    fn a_file_without_holes_is_read_unchanged() {
        let file = sparse(&[(0, &[7; 5000])], 5000);
        for content in [text(&file, LARGEST_MAP), binary(&file)] {
            let content = content.expect("a reading");
            assert_eq!((content.bytes, content.left_out), (vec![7; 5000], None));
        }
        let cut = text(&file, 1000).expect("a reading");
        assert_eq!(cut.bytes.len(), 1000);
        assert!(cut.left_out.is_some());
    }

    #[test]
    fn a_binary_file_keeps_its_offsets_up_to_a_limit() {
        let file = sparse(&[(0, b"head"), (MIB, b"tail")], MIB + 4);
        let content = binary(&file).expect("a reading");
        assert_eq!(content.bytes.len() as u64, MIB + 4);
        assert!(content.bytes.ends_with(b"tail") && content.left_out.is_none());
        let content = binary(&sparse(&[(0, b"head")], 1 << 40)).expect("a reading");
        assert!(content.bytes.len() as u64 <= LARGEST_HOLES + MIB);
        assert!(content.left_out.is_some());
    }
}
