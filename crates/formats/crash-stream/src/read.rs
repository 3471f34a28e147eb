//! Reads the stream.

use crate::error::Error;
use crate::layout::{
    CODE_BYTES, CODE_BYTES_HEADER, CODES, DUMP_SIZE, HEADER_SIZE, HEADER_SIZE_AT, Header, LEFT_OUT,
    MAGIC, STREAM_TYPE, VERSION, VERSION_AT,
};
use crate::minidump::find_stream;
use crate::words::{u16_at, u32_at, u64_at};

/// A stream that describes JIT-compiled code.
#[derive(Clone, Copy, Debug)]
pub struct CrashStream<'s> {
    /// What the header says.
    pub header: Header,
    /// A jitdump with the codes. It may be damaged: the stream was written in a process that had crashed.
    pub dump: &'s [u8],
    code_bytes: CodeBytes<'s>,
}

impl<'s> CrashStream<'s> {
    /// The stream in a minidump; `None` if there is none, or if a crash reporter reserved space for one that was not written.
    ///
    /// # Errors
    /// If this is not a minidump, or if it or the stream is damaged.
    pub fn find(minidump: &'s [u8]) -> Result<Option<Self>, Error> {
        let stream = find_stream(minidump, STREAM_TYPE)?;
        stream.filter(|stream| u32_at(stream, 0) != Some(0)).map(Self::parse).transpose()
    }

    /// Parses a stream. What is behind its end is ignored, because a crash reporter may reserve more than is used.
    ///
    /// # Errors
    /// If it is not such a stream, or one of a later version.
    pub fn parse(stream: &'s [u8]) -> Result<Self, Error> {
        let damaged = |at: usize, what| Error::Damaged { at: at as u64, what };
        if stream.len() < HEADER_SIZE {
            return Err(damaged(0, "it is too short"));
        }
        if u32_at(stream, 0) != Some(MAGIC) {
            return Err(damaged(0, "it does not begin like one in this machine's byte order"));
        }
        let version = u16_at(stream, VERSION_AT).unwrap_or(0);
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let [codes, code_bytes] = [CODES, CODE_BYTES].map(|at| u32_at(stream, at).unwrap_or(0));
        let [dump_size, left_out] = [DUMP_SIZE, LEFT_OUT].map(|at| u64_at(stream, at).unwrap_or(0));
        let header = Header { codes, code_bytes, dump_size, left_out };
        let start = usize::from(u16_at(stream, HEADER_SIZE_AT).unwrap_or(0));
        if start < HEADER_SIZE {
            return Err(damaged(HEADER_SIZE_AT, "its header is too short"));
        }
        let size = usize::try_from(dump_size).ok();
        let split =
            stream.get(start..).zip(size).and_then(|(rest, size)| rest.split_at_checked(size));
        let (dump, rest) = split.ok_or_else(|| damaged(DUMP_SIZE, "its jitdump is cut"))?;
        Ok(Self { header, dump, code_bytes: CodeBytes { rest, left: code_bytes } })
    }

    /// The machine code of codes for which the jitdump has none: their addresses, and the bytes as they were in memory.
    #[must_use]
    pub fn code_bytes(&self) -> CodeBytes<'s> {
        self.code_bytes
    }
}

/// The machine code in a stream: see [`CrashStream::code_bytes`]. It ends where the stream is damaged.
#[derive(Clone, Copy, Debug)]
pub struct CodeBytes<'s> {
    rest: &'s [u8],
    left: u32,
}

impl<'s> Iterator for CodeBytes<'s> {
    type Item = (u64, &'s [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let address = u64_at(self.rest, 0)?;
        let size = usize::try_from(u64_at(self.rest, 8)?).ok()?;
        let (bytes, rest) = self.rest.get(CODE_BYTES_HEADER..)?.split_at_checked(size)?;
        let padding = size.checked_next_multiple_of(8)?.checked_sub(size)?;
        self.rest = rest.get(padding..).unwrap_or_default();
        Some((address, bytes))
    }
}
