//! Symbols of programs: any bytes, as a file.

use jitscribe_inject::files::FileSymbols;

/// Reads it, and asks for each offset.
pub fn run(bytes: &[u8]) {
    if let Ok(symbols) = FileSymbols::read(&bytes) {
        (0..=bytes.len() as u64).chain([u64::MAX]).for_each(|offset| _ = symbols.name(offset));
        assert!(symbols.build_id().is_none_or(|id| id.len() <= bytes.len()));
    }
}
