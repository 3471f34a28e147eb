//! What lies at an address of this process.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The bytes there; what cannot be read is zeros. Through the kernel, since the caller may be
/// wrong about what is there, and since memcheck would tell of gaps that nobody has written to.
pub(crate) fn read(address: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    if let Ok(memory) = File::open("/proc/self/mem") {
        let _ = memory.read_exact_at(&mut bytes, address);
    }
    bytes
}

/// What sort of memory a code lies in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of an object file: valgrind knows of it, and would forget it for ours.
    Object,
    /// Anything else, with the extent of the mapping.
    Other(Range<u64>),
}

/// What lies there; `None` if nothing does.
pub(crate) fn kind(address: u64) -> Option<Kind> {
    // A small buffer, for the profile may be one of the heap.
    let mut maps = BufReader::with_capacity(1 << 12, File::open("/proc/self/maps").ok()?);
    let mut line = Vec::with_capacity(128);
    while maps.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some(kind) = kind_of(line.trim_ascii_end(), address) {
            return Some(kind);
        }
        line.clear();
    }
    None
}

fn kind_of(line: &[u8], address: u64) -> Option<Kind> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut range = fields.next()?.split(|byte| *byte == b'-').map(hexadecimal);
    let range = range.next()??..range.next()??;
    if !range.contains(&address) {
        return None;
    }
    let path = line.iter().position(|byte| *byte == b'/').map(|at| &line[at..]);
    if path.is_some_and(is_object) { Some(Kind::Object) } else { Some(Kind::Other(range)) }
}

fn is_object(path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    /// Where an arena's file (crate `code-arena`) says that it is one. What valgrind has read of it, when it had no code
    /// yet, is to be forgotten for ours.
    const ARENA_AT: usize = 480;
    const ARENA: &[u8] = b"codearen";
    let mut head = Vec::with_capacity(512);
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    // Devices may do anything when they are opened.
    path.metadata().is_ok_and(|file| file.is_file())
        && File::open(path).and_then(|file| file.take(512).read_to_end(&mut head)).is_ok()
        && head.starts_with(b"\x7fELF")
        && head.get(ARENA_AT..ARENA_AT + ARENA.len()) != Some(ARENA)
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind, read};

    #[test]
    fn tells_this_program_from_its_memory() {
        let own = kind as fn(u64) -> Option<Kind> as usize as u64;
        assert_eq!(kind(own), Some(Kind::Object));
        let heap = vec![7_u8; 5000];
        let address = heap.as_ptr().addr() as u64;
        assert!(matches!(kind(address), Some(Kind::Other(range)) if range.contains(&address)));
        assert_eq!(kind(1), None);
        assert_eq!(read(address, 5000), heap);
        assert_eq!(read(1, 3), [0; 3]);
    }
}
