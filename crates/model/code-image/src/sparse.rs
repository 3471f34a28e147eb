//! Output with holes, hashed while it is written.

use std::io::{self, Seek, SeekFrom, Write};
use std::thread;

use fallible::Vec;

/// Gaps up to this length are written as zeros: this is cheaper than a seek, and file systems store whole blocks
/// anyway.
const SMALL_GAP: u64 = 4096;
const BUFFER: usize = 256 * 1024;
/// Data of at least this size is hashed by a separate thread while it is written.
const LARGE: usize = 1024 * 1024;

/// Writes pieces of a file at ascending offsets; the gaps between them stay holes.
#[derive(Debug)]
pub(crate) struct SparseWriter<W> {
    out: W,
    /// File offset of the buffer's first byte.
    buffer_start: u64,
    buffer: Vec<u8>,
    hasher: blake3::Hasher,
}

impl<W: Write + Seek> SparseWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        SparseWriter { out, buffer_start: 0, buffer: Vec::new(), hasher: blake3::Hasher::new() }
    }

    /// File offset behind the last byte written.
    pub(crate) fn position(&self) -> u64 {
        self.buffer_start.saturating_add(self.buffer.len() as u64)
    }

    /// Writes `bytes` at `offset`, which must not be below [`position`](Self::position).
    pub(crate) fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        match offset.checked_sub(self.position()) {
            Some(gap @ 0..=SMALL_GAP) => {
                self.buffer.resize(self.buffer.len().saturating_add(gap as usize), 0);
            }
            _ => {
                self.flush_buffer()?;
                self.buffer_start = offset;
            }
        }
        if self.buffer.len().saturating_add(bytes.len()) > BUFFER {
            self.flush_buffer()?;
        }
        if bytes.len() >= BUFFER {
            self.write_out(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// The hash of everything written so far and of its positions.
    pub(crate) fn hash(&mut self) -> io::Result<blake3::Hash> {
        self.flush_buffer()?;
        Ok(self.hasher.finalize())
    }

    /// Writes the first bytes of the file, which depend on all others, and finishes.
    pub(crate) fn finish(mut self, head: &[u8]) -> io::Result<W> {
        self.flush_buffer()?;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(head)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() {
            self.write_out(&buffer)?;
            buffer.clear();
        }
        self.buffer = buffer;
        Ok(())
    }

    /// Writes `bytes` at the start of the buffer, which must be empty.
    fn write_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len() as u64;
        self.hasher.update(&self.buffer_start.to_le_bytes());
        self.hasher.update(&len.to_le_bytes());
        self.out.seek(SeekFrom::Start(self.buffer_start))?;
        // Creating a thread allocates memory that cannot be reserved in advance.
        if bytes.len() < LARGE || fallible::is_attempting() {
            self.hasher.update(bytes);
            self.out.write_all(bytes)?;
        } else {
            let (is_hashed, written) = thread::scope(|scope| {
                let hash = || {
                    self.hasher.update(bytes);
                };
                let is_hashed = thread::Builder::new().spawn_scoped(scope, hash).is_ok();
                (is_hashed, self.out.write_all(bytes))
            });
            written?;
            if !is_hashed {
                self.hasher.update(bytes);
            }
        }
        self.buffer_start = self.buffer_start.saturating_add(len);
        Ok(())
    }
}
