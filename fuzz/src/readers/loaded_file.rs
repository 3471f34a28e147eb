//! What is loaded of a program, put together as a file: any memory.

use std::io;

use jitdump::ReadAt;
use native_files::{Elf, FileFrames, Functions, LoadedFile, LoadedPart};

/// Where the memory is.
const START: u64 = 0x7f00_0000_0000;
/// The largest file.
const LIMIT: u64 = 1 << 20;

/// The memory of a process, from [`START`] on.
struct Memory<'b>(&'b [u8]);

impl ReadAt for Memory<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        offset.checked_sub(START).map_or(Ok(0), |offset| self.0.read_at(buffer, offset))
    }
}

/// Reads it as mapped in one part, and in two parts of which the second begins elsewhere in the file, and reads the files that this makes.
pub fn run(bytes: &[u8]) {
    let end = START + bytes.len() as u64;
    let middle = START + bytes.len() as u64 / 2;
    let part = |range, offset| LoadedPart { range, offset };
    let whole = [part(START..end, 0)];
    let parts = [part(START..middle, 0), part(middle..end, 0x3000)];
    for parts in [&whole[..], &parts] {
        let file = LoadedFile::read(&Memory(bytes), parts, LIMIT);
        let Some(file) = file.and_then(LoadedFile::into_bytes) else { continue };
        // Tables of symbols and their names are in it twice.
        assert!(file.len() as u64 <= 2 * LIMIT + 0x2000);
        let elf = Elf::read(file.as_slice()).expect("an object file");
        let _ = FileFrames::read(&elf);
        let functions = Functions::of(elf).expect("symbols");
        for offset in (0..file.len() as u64).step_by(64) {
            functions.name(offset);
        }
    }
}
