//! The notes of a core file: which process it was, and which files it had mapped.

use std::ops::Range;

use object::elf::PT_NOTE;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endian, Endianness, ReadRef};

/// The most bytes of notes that are read. The kernel writes up to 4 MiB of mapped files, and some kilobytes for each thread.
pub const LARGEST: u64 = 64 << 20;

/// Types of notes.
const NT_PRPSINFO: u32 = 3;
const NT_FILE: u32 = 0x4649_4c45;

/// The name that the kernel gives to its notes.
const KERNEL: &[u8] = b"CORE";

/// What the notes say. Whatever is missing or damaged is left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CoreNotes {
    /// The process, in its own pid namespace.
    pub pid: Option<u32>,
    /// The user that it ran as.
    pub user: Option<u32>,
    /// The name of its program, cut off at 15 bytes.
    pub program: Vec<u8>,
    /// Its mapped files, sorted by address.
    pub files: Vec<MappedFile>,
}

/// A part of a file that was mapped.
#[derive(Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Its addresses.
    pub range: Range<u64>,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The path of the file, as the kernel gives it.
    pub path: Vec<u8>,
}

/// How numbers are written in a core file.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    endian: Endianness,
    is_64: bool,
}

/// Where a core file has notes: offset and size. Also returns how numbers in them are written.
pub fn note_segments<'data, Elf, R>(elf: &ElfFile<'data, Elf, R>) -> (Words, Vec<(u64, u64)>)
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let endian = elf.endian();
    let is_note = |header: &&Elf::ProgramHeader| header.p_type(endian) == PT_NOTE;
    let segments = elf.elf_program_headers().iter().filter(is_note);
    let segments = segments
        .map(|header| (header.p_offset(endian).into(), header.p_filesz(endian).into()))
        .collect();
    (Words { endian, is_64: elf.elf_header().is_type_64() }, segments)
}

impl CoreNotes {
    /// Adds what the notes in `bytes` say.
    pub fn add(&mut self, words: Words, mut bytes: &[u8]) {
        while let Some(head) = bytes.get(..12) {
            let word =
                |at| u32_at(words.endian, head, at).and_then(|word| usize::try_from(word).ok());
            let (Some(name), Some(content)) = (word(0), word(4)) else { return };
            let kind = u32_at(words.endian, head, 8);
            let Some(behind) = bytes.get(12..) else { return };
            let Some((name, behind)) = padded(behind, name) else { return };
            let Some((content, behind)) = padded(behind, content) else { return };
            bytes = behind;
            if name.strip_suffix(b"\0").unwrap_or(name) != KERNEL {
                continue;
            }
            match kind {
                Some(NT_PRPSINFO) => self.add_process(words, content),
                Some(NT_FILE) => self.add_files(words, content),
                _ => {}
            }
        }
    }

    /// `struct elf_prpsinfo` of the kernel. User ids have 16 bits in it where words have 32.
    fn add_process(&mut self, words: Words, content: &[u8]) {
        let (user, pid, name) = if words.is_64 { (Some(16), 24, 40) } else { (None, 12, 28) };
        let number = |at| u32_at(words.endian, content, at);
        self.pid = number(pid).filter(|pid| *pid > 0);
        self.user = user.and_then(number);
        let name = content.get(name..name + 16).unwrap_or_default();
        self.program = name.split(|byte| *byte == 0).next().unwrap_or_default().to_owned();
    }

    /// A count, the size of a page, three words for each mapping (start, end, offset), and then the paths.
    fn add_files(&mut self, words: Words, content: &[u8]) {
        let size = if words.is_64 { 8 } else { 4 };
        let Some(count) = words.number(content).and_then(|count| usize::try_from(count).ok())
        else {
            return;
        };
        let table = count.checked_mul(3 * size).and_then(|length| {
            let behind = content.get(2 * size..)?;
            behind.split_at_checked(length)
        });
        let page = content.get(size..).and_then(|page| words.number(page)).unwrap_or(0);
        let Some((table, paths)) = table else { return };
        // With a wrong count, rows are made of paths.
        if paths.iter().filter(|byte| **byte == 0).count() < count {
            return;
        }
        for (row, path) in table.chunks_exact(3 * size).zip(paths.split(|byte| *byte == 0)) {
            let field = |number: usize| row.get(number * size..).and_then(|row| words.number(row));
            if let (Some(start), Some(end), Some(pages)) = (field(0), field(1), field(2)) {
                let offset = pages.saturating_mul(page);
                self.files.push(MappedFile { range: start..end, offset, path: path.to_owned() });
            }
        }
        self.files.sort_by_key(|file| file.range.start);
    }

    /// The file that was mapped at `address`.
    pub fn file_at(&self, address: u64) -> Option<&MappedFile> {
        let behind = self.files.partition_point(|file| file.range.start <= address);
        let file = self.files.get(behind.checked_sub(1)?)?;
        file.range.contains(&address).then_some(file)
    }
}

impl Words {
    /// The number of the machine's size at the beginning of `bytes`.
    fn number(self, bytes: &[u8]) -> Option<u64> {
        if self.is_64 {
            bytes.first_chunk().map(|word| self.endian.read_u64(*word))
        } else {
            u32_at(self.endian, bytes, 0).map(u64::from)
        }
    }
}

fn u32_at(endian: Endianness, bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| endian.read_u32(*word))
}

/// The first `length` bytes, and what follows behind the next multiple of 4.
fn padded(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    let content = bytes.get(..length)?;
    let behind = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((content, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words { endian: Endianness::Little, is_64: true };

    fn note(kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [5, content.len() as u32, kind] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"CORE\0\0\0\0");
        note.extend(content);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    fn process() -> Vec<u8> {
        let mut content = vec![0; 136];
        content[16..20].copy_from_slice(&1000_u32.to_le_bytes());
        content[24..28].copy_from_slice(&4711_u32.to_le_bytes());
        content[40..45].copy_from_slice(b"node\0");
        content
    }

    fn files(count: u64) -> Vec<u8> {
        let words = [count, 4096, 0x5000, 0x6000, 0, 0x1000, 0x3000, 1];
        let mut content: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        content.extend(b"/bin/node\0/tmp/jit-4711.dump\0");
        content
    }

    #[test]
    fn a_core_file_says_which_process_it_was_and_what_it_had_mapped() {
        let mut bytes = note(1, &[7; 40]);
        bytes.extend(note(NT_PRPSINFO, &process()));
        bytes.extend(note(NT_FILE, &files(2)));
        let mut notes = CoreNotes::default();
        notes.add(WORDS, &bytes);
        assert_eq!(
            (notes.pid, notes.user, notes.program.as_slice()),
            (Some(4711), Some(1000), &b"node"[..])
        );
        let path = |address| notes.file_at(address).map(|file| file.path.as_slice());
        assert_eq!(path(0x1000), Some(&b"/tmp/jit-4711.dump"[..]));
        assert_eq!(path(0x5fff), Some(&b"/bin/node"[..]));
        assert_eq!((path(0xfff), path(0x3000), path(0x6000)), (None, None, None));
    }

    #[test]
    fn damaged_notes_are_left_out() {
        for count in [3, u64::MAX / 24 + 1, u64::MAX] {
            let mut notes = CoreNotes::default();
            notes.add(WORDS, &note(NT_FILE, &files(count)));
            assert!(notes.files.is_empty(), "{count}");
        }
        let mut bytes = note(NT_PRPSINFO, &process());
        bytes.extend(note(NT_FILE, &files(2)));
        for length in 0..bytes.len() {
            CoreNotes::default().add(WORDS, &bytes[..length]);
        }
        bytes[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut notes = CoreNotes::default();
        notes.add(WORDS, &bytes);
        assert_eq!(notes, CoreNotes::default());
    }
}
