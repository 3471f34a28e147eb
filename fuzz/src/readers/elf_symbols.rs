//! Symbols of programs: any bytes, as a file.

use jitscribe_inject::files::FileSymbols;

/// Reads it, and asks for each offset.
pub fn run(bytes: &[u8]) {
    if let Ok(symbols) = FileSymbols::read(bytes) {
        for offset in (0..=bytes.len() as u64).chain([u64::MAX]) {
            symbols.has_name(offset);
            // No long name is read for each byte of the input.
            if offset.is_multiple_of(16) {
                symbols.name(offset);
                symbols.name_of_start(offset);
            }
        }
        assert!(symbols.build_id().is_none_or(|id| id.len() <= bytes.len()));
    }
}
