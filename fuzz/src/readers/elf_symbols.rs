//! Symbols of programs: any bytes, as a file.

use std::io;
use std::path::Path;

use native_files::{DebugFiles, Elf, Functions, NativeFile};

/// Reads it, and asks for each offset.
pub fn run(bytes: &[u8]) {
    if let Ok(symbols) = Functions::read(bytes) {
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
    let Ok(elf) = Elf::read(bytes) else { return };
    let open = |_: &Path| Err(io::ErrorKind::NotFound.into());
    let debug_files = DebugFiles { open: &open, ask_servers: false };
    let file = NativeFile::new(elf, b"/file", &debug_files);
    for address in (0..=bytes.len() as u64).step_by(16).chain([u64::MAX]) {
        file.symbol(address);
        file.label(address);
        file.elf().mapped_address(address);
        file.elf().bytes(&(address..address.saturating_add(16)));
    }
    file.each_name(|name| assert!(name.len() <= bytes.len()));
}
