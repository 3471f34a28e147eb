//! Damaged programs and libraries are read as far as possible: the same bytes for all readers.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use native_files::{DebugFiles, Elf, FileFrames, Functions, Lines, NativeFile};
use proptest::prelude::*;

/// A library with exported functions and unwind tables: the C library of this machine.
static LIBRARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings of this process");
    let path = maps.lines().find_map(|line| {
        line.find('/').and_then(|at| line.get(at..)).filter(|path| path.contains("/libc.so.6"))
    });
    std::fs::read(path.expect("the C library")).expect("its content")
});

/// Small programs with debug info, in each of the ways in which it is compressed.
static PROGRAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a folder");
    let (source, program) = (dir.path().join("a.c"), dir.path().join("a.out"));
    let text = "static inline __attribute__((always_inline)) int twice(int n) { volatile int m = n; return m + m; }\n\
                int main(int n, char **words) { return twice(n) + (words != 0); }\n";
    std::fs::write(&source, text).expect("a source");
    let run = |command: &mut Command| assert!(command.status().expect("it starts").success());
    run(Command::new("cc").args(["-O1", "-g", "-o"]).arg(&program).arg(&source));
    ["none", "zlib", "zlib-gnu", "zstd"]
        .into_iter()
        .map(|method| {
            let out = dir.path().join(method);
            let option = format!("--compress-debug-sections={method}");
            run(Command::new("objcopy").arg(option).arg(&program).arg(&out));
            std::fs::read(out).expect("a program")
        })
        .collect()
});

/// Asks all readers.
fn read_all(bytes: &[u8]) {
    let offsets = || (0..bytes.len() as u64 + 97).step_by(997).chain([u64::MAX]);
    if let Ok(functions) = Functions::read(bytes) {
        for offset in offsets() {
            functions.has_name(offset);
            functions.name(offset);
            functions.name_of_start(offset);
            let range = offset / 2..offset;
            let filled = functions.filled(&range, offset / 3);
            assert!(range.start <= filled.start && filled.end <= range.end, "{filled:x?}");
        }
    }
    if let Ok(elf) = Elf::read(bytes) {
        if let Some(frames) = FileFrames::read(&elf) {
            frames.is_bottom(0x1000);
            frames.above_offset(0x1000);
            frames.php_frame();
        }
        // Files may name themselves.
        let open = |_: &Path| -> io::Result<&[u8]> { Ok(bytes) };
        let debug_files = DebugFiles { open: &open, ask_servers: false };
        let file = NativeFile::new(elf, b"/folder/file", &debug_files);
        for address in offsets() {
            file.elf().mapped_address(address);
            file.symbol(address);
            file.label(address);
            file.elf().bytes(&(address..address.saturating_add(16)));
        }
        file.each_name(|name| assert!(name.len() <= bytes.len()));
        if let Some(lines) = file.lines() {
            for address in (0..0x2000).step_by(7).chain([u64::MAX - 1, u64::MAX]) {
                lines.frames(address);
            }
            lines.in_range(&(0x1000..0x1200));
        }
    }
}

#[test]
fn whole_files_are_read() {
    let functions = Functions::read(&LIBRARY[..]).expect("an ELF file");
    let mut offsets = (0..LIBRARY.len() as u64).step_by(997);
    assert!(offsets.any(|offset| functions.has_name(offset)));
    let elf = Elf::read(&LIBRARY[..]).expect("an ELF file");
    assert!(FileFrames::read(&elf).expect("of 64 bits").tables.is_some());
    read_all(&LIBRARY);
    for program in PROGRAMS.iter() {
        let elf = Elf::read(&program[..]).expect("an ELF file");
        assert!(Lines::read(&elf, None).is_some());
        read_all(program);
    }
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"\x7fELF", b"\x7fELF\x02", b"\x7fELF\x03aaaaaaaaaaaaaaaaaaaa"] {
        assert!(Elf::read(bytes).is_err() && Functions::read(bytes).is_err());
    }
}

/// A small ELF file with these sections.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut strings = vec![0];
    let mut content = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut add = |name: &str, kind: u32, bytes: &[u8], strings: &mut Vec<u8>| {
        let name_at = strings.len() as u32;
        strings.extend(name.bytes().chain([0]));
        let bytes = if kind == 3 { strings.clone() } else { bytes.to_vec() };
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name_at.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(content.len() as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        content.extend(bytes);
        headers.extend(header);
    };
    for (name, bytes) in sections {
        add(name, 1, bytes, &mut strings);
    }
    add(".shstrtab", 3, &[], &mut strings);
    let count = sections.len() as u16 + 2;
    content[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    content[16..18].copy_from_slice(&3_u16.to_le_bytes());
    content[18..20].copy_from_slice(&62_u16.to_le_bytes());
    let at = content.len() as u64;
    content[40..48].copy_from_slice(&at.to_le_bytes());
    content[52..54].copy_from_slice(&64_u16.to_le_bytes());
    content[58..60].copy_from_slice(&64_u16.to_le_bytes());
    content[60..62].copy_from_slice(&count.to_le_bytes());
    content[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    content.extend(headers);
    content
}

#[test]
fn sections_are_found_by_their_whole_names() {
    let bytes = elf(&[(".debug_information", b"x"), (".debug_info", b"yz")]);
    let elf = Elf::read(&bytes[..]).expect("an ELF file");
    let section = elf.section(b".debug_info").expect("a section");
    assert_eq!(elf.content(section, 2).as_deref(), Some(&b"yz"[..]));
    assert_eq!(elf.content(section, 1), None);
    assert!(elf.section(b".debug_in").is_none());
    assert!(elf.has_lines() && !elf.has_symbols());
}

#[test]
fn links_have_a_name_and_a_checksum_or_build_id() {
    let bytes = elf(&[
        (".gnu_debuglink", b"app.debug\0\0\0\x26\x39\xf4\xcb"),
        (".gnu_debugaltlink", b"../shared\0\x01\x02\x03"),
    ]);
    let linked = Elf::read(&bytes[..]).expect("an ELF file");
    assert_eq!(linked.debug_link(), Some((b"app.debug".to_vec(), 0xcbf4_3926)));
    assert_eq!(linked.alternate_link(), Some((b"../shared".to_vec(), vec![1, 2, 3])));
    let cut = elf(&[(".gnu_debuglink", b"app.debug\0\0\0\x26\x39\xf4")]);
    assert_eq!(Elf::read(&cut[..]).expect("an ELF file").debug_link(), None);
}

/// A section that says that it is decompressed to a terabyte, or is, is left out.
#[test]
fn decompressed_sections_have_a_limit() {
    let huge = (1_u64 << 40).to_be_bytes();
    let bytes = elf(&[(".zdebug_info", &[b"ZLIB", &huge[..], b"\x78\x9c"].concat())]);
    let elf = Elf::read(&bytes[..]).expect("an ELF file");
    assert!(elf.has_lines());
    assert!(Lines::read(&elf, None).is_none_or(|lines| lines.frames(0).is_empty()));
}

/// Replaces bytes.
fn damaged(mut bytes: Vec<u8>, damage: Vec<(prop::sample::Index, u8)>) -> Vec<u8> {
    for (place, byte) in damage {
        let at = place.index(bytes.len());
        bytes[at] = byte;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes are replaced in the headers of segments at the beginning, in the headers of sections at the end, and in between.
    #[test]
    fn damaged_libraries_are_read_or_refused(
        changes in prop::collection::vec((0_usize..3, any::<usize>(), any::<u8>()), 0..8),
        kept in prop::option::weighted(0.25, 0_usize..(1 << 21)),
    ) {
        let mut bytes = LIBRARY.clone();
        let len = bytes.len();
        for (part, at, byte) in changes {
            let at = match part {
                0 => at % 4096,
                1 => len - 1 - at % 4096,
                _ => at % len,
            };
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(kept.unwrap_or(len));
        read_all(&bytes);
    }

    #[test]
    fn heads_of_any_content(head in prop::collection::vec(any::<u8>(), 0..256), class in 1u8..3) {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        bytes.extend(head);
        read_all(&bytes);
    }
}

proptest! {
    #[test]
    fn damaged_programs_are_read_or_refused(
        program: prop::sample::Index,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        read_all(&damaged(program.get(&PROGRAMS).clone(), damage));
    }

    #[test]
    fn any_debug_info_is_read(
        sections in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 8),
    ) {
        let names = [
            ".debug_line",
            ".debug_info",
            ".debug_abbrev",
            ".debug_aranges",
            ".debug_str",
            ".gnu_debuglink",
            ".gnu_debugaltlink",
            ".gnu_debugdata",
        ];
        let sections: Vec<(&str, &[u8])> =
            names.into_iter().zip(sections.iter().map(Vec::as_slice)).collect();
        read_all(&elf(&sections));
    }

    #[test]
    fn any_file_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }
}
