//! Queries and reads the memory of this process.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use fallible::Vec;

use crate::loaded::is_loaded;
use crate::window::PAGE;

/// Reads bytes; those that cannot be read are zeros. It reads through the kernel, because the caller may be wrong about
/// what is there, and because memcheck would report uninitialised gaps.
pub(crate) fn read(address: u64, size: usize) -> Vec<u8> {
    let mut bytes = fallible::vec![0; size];
    if let Ok(memory) = File::open("/proc/self/mem") {
        let _ = memory.read_exact_at(&mut bytes, address);
    }
    bytes
}

/// The kind of memory that contains a code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of an object file: Valgrind has read it, and would forget it for ours.
    Object,
    /// Anything else, with the extent of the mapping.
    Other(Range<u64>),
}

/// The end of the pages from `start` on, up to `end`, that are known to belong to no file: the kernel says so of each page, and
/// the dynamic linker has loaded no object there, whose changed pages the kernel takes for anonymous memory. `start` if nothing is
/// known.
///
/// Unlike [`kind`], this takes no longer for a process with many mappings.
pub(crate) fn end_of_anonymous(start: u64, end: u64) -> u64 {
    const ENTRY: u64 = 8;
    let Ok(entries) = File::open("/proc/self/pagemap") else { return start };
    let mut buffer = [0; 64 * ENTRY as usize];
    let mut at = start;
    while at < end {
        let pages = usize::try_from((end - at).div_ceil(PAGE)).unwrap_or(usize::MAX);
        let length = buffer.len().min(pages.saturating_mul(ENTRY as usize));
        let Some(buffer) = buffer.get_mut(..length) else { return at };
        if entries.read_exact_at(buffer, at / PAGE * ENTRY).is_err() {
            return at;
        }
        for entry in buffer.as_chunks().0 {
            if !is_anonymous(u64::from_le_bytes(*entry)) || is_loaded(at) != Some(false) {
                return at;
            }
            at += PAGE;
        }
    }
    end
}

/// Whether a page of `/proc/self/pagemap` (proc_pid_pagemap(5)) has content, and none of a file or of shared memory.
fn is_anonymous(entry: u64) -> bool {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_FILE: u64 = 1 << 61;
    entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0
}

/// The kind of memory at an address; `None` if nothing is mapped.
pub(crate) fn kind(address: u64) -> Option<Kind> {
    let mut maps = File::open("/proc/self/maps").ok()?;
    // On the stack, because the profile may be one of the heap. It has space for the longest line, whose path is cut.
    let mut buffer = [0; 1 << 13];
    let mut held = 0;
    loop {
        let more = maps.read(buffer.get_mut(held..)?).ok()?;
        held += more;
        let text = buffer.get(..held)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let whole = if more == 0 || (whole == 0 && held == buffer.len()) { held } else { whole };
        let found = text.get(..whole)?.split(|byte| *byte == b'\n');
        if let Some(kind) = { found }.find_map(|line| kind_of(line.trim_ascii_end(), address)) {
            return Some(kind);
        }
        if more == 0 {
            return None;
        }
        buffer.copy_within(whole..held, 0);
        held -= whole;
    }
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
    /// Offset of the marker in an arena's file (crate `code-arena`). Valgrind read that file before it had any code, and
    /// may forget it for ours.
    const ARENA_AT: usize = 480;
    const ARENA: &[u8] = b"codearen";
    let mut buffer = [0; 512];
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    // Opening devices may have side effects.
    path.metadata().is_ok_and(|file| file.is_file())
        && guest::begin_of(path, &mut buffer).is_some_and(|head| {
            head.starts_with(b"\x7fELF")
                && head.get(ARENA_AT..ARENA_AT + ARENA.len()) != Some(ARENA)
        })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::{Kind, end_of_anonymous, kind, read};
    use crate::window::PAGE;

    #[test]
    fn the_program_is_distinguished_from_its_memory() {
        let own = kind as fn(u64) -> Option<Kind> as usize as u64;
        assert_eq!(kind(own), Some(Kind::Object));
        let heap = vec![7_u8; 5000];
        let address = heap.as_ptr().addr() as u64;
        assert!(matches!(kind(address), Some(Kind::Other(range)) if range.contains(&address)));
        assert_eq!(kind(1), None);
        assert_eq!(read(address, 5000), heap);
        assert_eq!(read(1, 3), [0; 3]);
    }

    #[test]
    fn pages_of_no_file_are_known() {
        static WRITTEN: AtomicU64 = AtomicU64::new(1);
        let page_of = |address: u64| {
            let page = address & !(PAGE - 1);
            page..page + PAGE
        };
        let is_known = |pages: Range<u64>| end_of_anonymous(pages.start, pages.end) == pages.end;
        let own = kind as fn(u64) -> Option<Kind> as usize as u64;
        assert!(!is_known(page_of(own)));
        // A page of the program that was changed is as anonymous to the kernel as the heap.
        WRITTEN.store(2, Relaxed);
        assert!(!is_known(page_of((&raw const WRITTEN).addr() as u64)));
        let heap = vec![7_u8; 1 << 20];
        let pages = page_of(heap.as_ptr().addr() as u64).end
            ..page_of(&raw const heap[heap.len() - 1] as u64).start;
        assert_eq!(is_known(pages), cfg!(target_env = "gnu"));
        // Nothing is there.
        assert!(!is_known(page_of(1 << 16)));
    }
}
