//! Files that are put together from memory, compared with the files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;

use jitdump::ReadAt;
use native_files::{Elf, FileFrames, Functions, LoadedFile, LoadedPart};
use proptest::prelude::*;

/// The mappings of this process by the names of their files.
fn mapped() -> BTreeMap<String, Vec<LoadedPart>> {
    let maps = fs::read_to_string("/proc/self/maps").expect("mappings");
    let mut all: BTreeMap<String, Vec<LoadedPart>> = BTreeMap::new();
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next().and_then(|range| range.split_once('-')).expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("a number");
        let offset = number(fields.nth(1).expect("an offset"));
        let Some(name) = fields.nth(2) else { continue };
        let part = LoadedPart { range: number(start)..number(end), offset };
        all.entry(name.to_owned()).or_default().push(part);
    }
    all
}

fn memory() -> File {
    File::open("/proc/self/mem").expect("the memory of this process")
}

/// The memory of a process with a file at this address.
struct Memory<'b> {
    start: u64,
    bytes: &'b [u8],
}

impl ReadAt for Memory<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        match offset.checked_sub(self.start) {
            Some(offset) => self.bytes.read_at(buffer, offset),
            None => Ok(0),
        }
    }
}

#[test]
fn libraries_that_are_loaded_are_as_in_their_files() {
    let mut compared = 0;
    for (name, parts) in mapped() {
        let Ok(file) = File::open(&name) else { continue };
        let Ok(elf) = Elf::read(file) else { continue };
        let loaded = LoadedFile::read(&memory(), &parts, u64::MAX).expect(&name);
        let bytes = loaded.into_bytes().expect(&name);
        let bytes = bytes.as_slice();
        let again = Elf::read(bytes).expect(&name);
        assert_eq!(again.build_id(), elf.build_id(), "{name}");
        let code = elf.section(b".text").expect("a section of code");
        let range = code.address..code.address + code.size.min(1 << 20);
        assert!(again.bytes(&range) == elf.bytes(&range), "{name}");
        // perf takes all sections with unwind tables by these names.
        for section in [&b".eh_frame_hdr"[..], b".eh_frame"] {
            let place = |section: &native_files::Section| (section.address, section.offset);
            let (file, loaded) = (elf.section(section), again.section(section));
            assert_eq!(file.map(place), loaded.map(place), "{name}");
            let content = |section: &native_files::Section| section.size;
            assert!(file.map(content) >= loaded.map(content), "{name}");
        }
        let frames = FileFrames::read(&again).expect("a file of 64 bits");
        assert_eq!(frames.tables.is_some(), elf.section(b".eh_frame").is_some(), "{name}");
        // Its exported functions, and no others.
        let functions = Functions::of(again).expect("symbols");
        let mut left = usize::MAX;
        for table in elf.symbol_tables().filter(|table| table.kind == object::elf::SHT_DYNSYM) {
            let each = |symbol: native_files::Symbol| {
                if symbol.kind == object::elf::STT_FUNC && symbol.section.0 != 0 && symbol.size > 0
                {
                    assert!(functions.name_at(symbol.value).is_some(), "{name}: {symbol:?}");
                    compared += 1;
                }
            };
            elf.each_symbol(table, &mut left, each).expect("symbols");
        }
    }
    // The C library alone has some thousand.
    assert!(compared > 500, "{compared}");
}

/// The code that the kernel maps into each process is a complete object file.
fn vdso() -> (Range<u64>, Vec<u8>) {
    let all = mapped();
    let range = all.get("[vdso]").and_then(|parts| parts.first()).expect("a vDSO").range.clone();
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let count = memory().read_at(&mut bytes, range.start).expect("its memory");
    assert_eq!(count, bytes.len());
    (range, bytes)
}

#[test]
fn only_what_the_file_has_mapped_is_read() {
    let (range, bytes) = vdso();
    let memory = Memory { start: range.start, bytes: &bytes };
    let read = |parts: &[LoadedPart], limit| LoadedFile::read(&memory, parts, limit);
    let whole = LoadedPart { range: range.clone(), offset: 0 };
    let file = read(std::slice::from_ref(&whole), u64::MAX).expect("a file");
    let file = file.into_bytes().expect("a file");
    let functions = Functions::read(file.as_slice()).expect("symbols");
    let names: Vec<_> = (0..bytes.len() as u64).filter_map(|at| functions.name(at)).collect();
    assert!(names.iter().any(|name| name.ends_with(b"clock_gettime")));
    assert!(read(std::slice::from_ref(&whole), 64).is_none());
    assert!(read(&[], u64::MAX).is_none());
    let part = |size: u64| LoadedPart { range: range.start..range.start + size, offset: 0 };
    for size in [16, 64, 200, 1024] {
        assert!(read(&[part(size)], u64::MAX).is_none(), "{size}");
    }
    let elsewhere = LoadedPart { range, offset: 4096 };
    assert!(read(&[elsewhere], u64::MAX).is_none());
}

/// The first segment begins behind the file's header.
#[test]
fn a_file_without_its_header_in_a_segment_is_none() {
    let (range, bytes) = vdso();
    let programs = u64::from_le_bytes(bytes[0x20..0x28].try_into().expect("8 bytes")) as usize;
    let parts = [LoadedPart { range: range.clone(), offset: 0 }];
    let made = |offset: u64, size: u64| {
        let mut bytes = bytes.clone();
        bytes[programs + 8..programs + 16].copy_from_slice(&offset.to_le_bytes());
        bytes[programs + 32..programs + 40].copy_from_slice(&size.to_le_bytes());
        let memory = Memory { start: range.start, bytes: &bytes };
        LoadedFile::read(&memory, &parts, u64::MAX).expect("segments").into_bytes()
    };
    assert!(made(0, 0x800).is_some());
    assert!(made(0x40, 0x800).is_none());
}

proptest! {
    /// A process may have anything there.
    #[test]
    fn any_memory_is_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..24),
        of_header in prop::collection::vec((0_usize..0x200, any::<u8>()), 0..6),
        start in prop_oneof![Just(0), Just(u64::MAX - 0x2000), any::<u64>()],
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, mut bytes) = vdso();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for (at, byte) in of_header {
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() * 4).max(0x200));
        let end = start.saturating_add(bytes.len() as u64);
        let memory = Memory { start, bytes: &bytes };
        let part = LoadedPart { range: start..end, offset: 0 };
        let limit = 1 << 20;
        if let Some(file) = LoadedFile::read(&memory, &[part], limit)
            && let Some(file) = file.into_bytes()
        {
            prop_assert!(file.len() as u64 <= 2 * limit);
            let elf = Elf::read(file.as_slice()).expect("an object file");
            let _ = FileFrames::read(&elf);
            let _ = Functions::of(elf);
        }
    }
}
