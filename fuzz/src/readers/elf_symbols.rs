//! Symbols of programs: any bytes, as a file.

use std::io;

use jitdump::ReadAt;
use jitscribe_inject::files::FileSymbols;

struct Bytes<'a>(&'a [u8]);

impl ReadAt for Bytes<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Reads it, and asks for each offset.
pub fn run(bytes: &[u8]) {
    if let Ok(symbols) = FileSymbols::read(&Bytes(bytes)) {
        (0..=bytes.len() as u64).chain([u64::MAX]).for_each(|offset| _ = symbols.name(offset));
        assert!(symbols.build_id().is_none_or(|id| id.len() <= bytes.len()));
    }
}
