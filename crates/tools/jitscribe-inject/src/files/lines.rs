//! Source positions of the code of a program or library, from its DWARF.
//!
//! Separate files with debug information, split DWARF and compressed sections are not read.

use std::io::{self, Read};
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::{Object, ObjectSection};

/// Larger files are not read. A browser with debug information has a few gigabytes.
const LARGEST: u64 = 1 << 30;
/// Inlined calls nested deeper than this are left out.
const DEEPEST: usize = 127;

type Reader = EndianArcSlice<RunTimeEndian>;

/// The source positions of an ELF file.
pub struct FileLines {
    context: Context<Reader>,
}

/// A function at an address, and a position in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFrame {
    /// The function's name, as a linker has it; `None` if the debug information has none.
    pub function: Option<Vec<u8>>,
    /// The path of the file; empty if unknown.
    pub file: Vec<u8>,
    /// The line from 1, or 0 if unknown.
    pub line: u32,
    /// The column from 1, or 0 if unknown.
    pub column: u32,
}

impl std::fmt::Debug for FileLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileLines").finish_non_exhaustive()
    }
}

impl FileLines {
    /// Reads the debug information of an ELF file; `None` if it has none.
    ///
    /// # Errors
    /// If the file cannot be read, is too large, or is no ELF file.
    pub fn read(file: impl Read) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Self::parse(&bytes)
    }

    /// Like [`Self::read`], from the content of the file.
    ///
    /// # Errors
    /// If it is no ELF file.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let elf = object::File::parse(bytes).map_err(invalid)?;
        if elf.section_by_name(".debug_line").is_none() {
            return Ok(None);
        }
        let endian = match elf.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let section = elf.section_by_name(id.name());
            // Compressed sections fail.
            let data = section.and_then(|section| section.uncompressed_data().ok());
            Ok(Reader::new(Arc::from(data.unwrap_or_default().as_ref()), endian))
        };
        let context = Dwarf::load(section).and_then(Context::from_dwarf);
        Ok(context.ok().map(|context| Self { context }))
    }

    /// The functions at an address, the innermost first: the last one is the function itself, and the others were inlined into it.
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let mut all = Vec::new();
        // addr2line computes the address behind it.
        if address == u64::MAX {
            return all;
        }
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else { return all };
        while let Ok(Some(frame)) = frames.next() {
            if all.len() > DEEPEST {
                return Vec::new();
            }
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let place = frame.location.unwrap_or(addr2line::Location {
                file: None,
                line: None,
                column: None,
            });
            all.push(SourceFrame {
                function: name.map(|name| name.as_bytes().to_vec()),
                file: place.file.unwrap_or_default().as_bytes().to_vec(),
                line: place.line.unwrap_or(0),
                column: place.column.unwrap_or(0),
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use proptest::prelude::*;

    use super::*;

    /// This test, which has debug information.
    fn program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("a path")).expect("the test")
    }

    #[test]
    fn lines_are_those_of_the_source() {
        let bytes = program();
        let lines = FileLines::parse(&bytes).expect("ELF").expect("lines");
        let elf = object::File::parse(&*bytes).expect("ELF");
        use object::ObjectSymbol;
        let is_read = |symbol: &object::Symbol<'_, '_>| {
            symbol.name().is_ok_and(|name| name.contains("FileLines") && name.contains("parse"))
        };
        let mut symbols = elf.symbols().filter(is_read).map(|symbol| symbol.address());
        let address = symbols.find(|&address| address != 0).expect("a symbol");
        let frames = lines.frames(address);
        let file = String::from_utf8_lossy(&frames.last().expect("a frame").file).into_owned();
        assert!(file.ends_with("files/lines.rs"), "{file}");
        assert!(frames.iter().all(|frame| frame.line > 0));
        assert_eq!(lines.frames(u64::MAX), []);
    }

    #[test]
    fn other_files_are_errors() {
        assert!(FileLines::parse(b"").is_err());
        assert!(FileLines::parse(b"\x7fELF").is_err());
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
    fn the_made_file_is_read() {
        let made = elf(&[(".debug_line", b"x"), (".debug_info", b"y")]);
        let read = object::File::parse(&*made).expect("ELF");
        let section = read.section_by_name(".debug_info").expect("a section");
        assert_eq!(section.data().expect("its content"), b"y");
    }

    /// A small program with debug information, and where that is in the file.
    fn small_program() -> &'static (Vec<u8>, Vec<std::ops::Range<usize>>) {
        static SMALL: OnceLock<(Vec<u8>, Vec<std::ops::Range<usize>>)> = OnceLock::new();
        SMALL.get_or_init(|| {
            let dir = tempfile::tempdir().expect("a folder");
            let (source, program) = (dir.path().join("a.c"), dir.path().join("a.out"));
            let text = "static inline __attribute__((always_inline)) int twice(int n) { volatile int m = n; return m + m; }\n\
                        int main(int n, char **words) { return twice(n) + (words != 0); }\n";
            std::fs::write(&source, text).expect("a source");
            let mut compiler = std::process::Command::new("cc");
            let status = compiler.args(["-O1", "-g", "-o"]).arg(&program).arg(&source).status();
            assert!(status.expect("cc").success());
            let bytes = std::fs::read(&program).expect("a program");
            let elf = object::File::parse(&*bytes).expect("ELF");
            let sections = elf
                .sections()
                .filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug_")));
            let ranges = sections.filter_map(|section| section.file_range());
            let ranges = ranges.map(|(at, size)| at as usize..(at + size) as usize).collect();
            (bytes, ranges)
        })
    }

    #[test]
    fn inlined_functions_come_first() {
        let (bytes, _) = small_program();
        let lines = FileLines::parse(bytes).expect("ELF").expect("lines");
        let elf = object::File::parse(&**bytes).expect("ELF");
        let text = elf.section_by_name(".text").expect("code");
        let all = (text.address()..text.address() + text.size()).map(|at| lines.frames(at));
        let names = |frames: Vec<SourceFrame>| -> Vec<(Vec<u8>, u32)> {
            frames.into_iter().map(|it| (it.function.unwrap_or_default(), it.line)).collect()
        };
        let all: Vec<_> = all.map(names).collect();
        let inlined = vec![(b"twice".to_vec(), 1), (b"main".to_vec(), 2)];
        assert!(all.contains(&inlined), "{all:?}");
    }

    proptest! {
        /// Damaged debug information makes it stop, not panic.
        #[test]
        fn damaged_debug_information_is_read(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        ) {
            let (bytes, ranges) = small_program();
            let mut bytes = bytes.clone();
            let places: Vec<usize> = ranges.iter().cloned().flatten().collect();
            for (place, byte) in damage {
                bytes[places[place.index(places.len())]] = byte;
            }
            if let Ok(Some(lines)) = FileLines::parse(&bytes) {
                for address in (0..0x2000).step_by(3).chain([u64::MAX - 1, u64::MAX]) {
                    lines.frames(address);
                }
            }
        }

        /// No debug information makes it panic.
        #[test]
        fn any_debug_information_is_read(
            sections in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 5),
            address: u64,
        ) {
            let names = [".debug_line", ".debug_info", ".debug_abbrev", ".debug_aranges", ".debug_str"];
            let sections: Vec<(&str, &[u8])> =
                names.into_iter().zip(sections.iter().map(Vec::as_slice)).collect();
            if let Ok(Some(lines)) = FileLines::parse(&elf(&sections)) {
                for address in [0, 1, address] {
                    lines.frames(address);
                }
            }
        }

        #[test]
        fn any_file_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(lines)) = FileLines::parse(&bytes) {
                lines.frames(0);
            }
        }
    }
}
