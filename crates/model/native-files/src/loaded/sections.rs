//! Writes the file, with new section headers at its end.

use object::elf::{
    SHF_ALLOC, SHF_EXECINSTR, SHT_DYNSYM, SHT_NOTE, SHT_NULL, SHT_PROGBITS, SHT_STRTAB, SectionType,
};

use super::LoadedFile;
use super::dynamic::{DynamicSymbols, SYMBOL};
use crate::elf::Elf;

/// The size of a section header.
const HEADER: u16 = 64;

/// A section header.
#[derive(Clone, Copy, Debug)]
struct Header {
    name: u32,
    kind: SectionType,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    entry: u64,
}

/// What is written.
struct Writer {
    content: Vec<u8>,
    headers: Vec<Header>,
    names: Vec<u8>,
}

impl LoadedFile {
    /// The file. `None` if it has no code, or its own headers are not in what is loaded: then no reader would take it for an object file.
    #[must_use]
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        let mut writer = Writer { content: Vec::new(), headers: Vec::new(), names: vec![0] };
        writer.headers.push(Header { kind: SHT_NULL, ..Header::empty() });
        // The index of the section of each segment's code.
        let mut sections = Vec::new();
        for segment in &self.segments {
            sections.push(u16::try_from(writer.headers.len()).ok()?);
            if segment.is_executable {
                let flags = (SHF_ALLOC | SHF_EXECINSTR).0;
                let (offset, size) = (segment.offset, segment.size());
                let address = segment.range.start;
                let text = Header { flags, address, offset, size, ..Header::empty() };
                writer.add(b".text", text)?;
            }
        }
        if writer.headers.len() == 1 {
            return None;
        }
        if let Some(notes) = &self.notes {
            let (address, offset, size) = (notes.range.start, notes.offset, notes.size());
            let notes = Header { kind: SHT_NOTE, address, offset, size, ..Header::empty() };
            writer.add(b".note.gnu.build-id", notes)?;
        }
        if let Some((header, tables)) = self.unwind_tables() {
            for (name, range) in [(&b".eh_frame_hdr"[..], header), (b".eh_frame", tables)] {
                let offset = self.offset(range.start)?;
                let (address, size) = (range.start, range.end.checked_sub(range.start)?);
                writer.add(name, Header { address, offset, size, ..Header::empty() })?;
            }
        }
        let symbols = self.dynamic_symbols();
        let (table, names) = (table(&symbols, &sections)?, symbols.names.to_vec());
        writer.content = self.content;
        writer.add_symbols(&table, &names)?;
        writer.finish().filter(|file| Elf::read(file.as_slice()).is_ok())
    }

    /// The offset of an address in the file.
    fn offset(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.range.contains(&address))?;
        segment.offset.checked_add(address.checked_sub(segment.range.start)?)
    }
}

/// A table of symbols, each in the section of its segment. The first symbol stands for none.
fn table(symbols: &DynamicSymbols<'_>, sections: &[u16]) -> Option<Vec<u8>> {
    let mut table = vec![0; usize::try_from(SYMBOL).ok()?];
    for (symbol, segment) in &symbols.symbols {
        let section = sections.get(*segment)?.to_le_bytes();
        table.extend_from_slice(symbol.get(..6)?);
        table.extend_from_slice(&section);
        table.extend_from_slice(symbol.get(8..)?);
    }
    Some(table)
}

impl Header {
    fn empty() -> Self {
        Self {
            name: 0,
            kind: SHT_PROGBITS,
            flags: SHF_ALLOC.0,
            address: 0,
            offset: 0,
            size: 0,
            link: 0,
            entry: 0,
        }
    }
}

impl Writer {
    /// Adds a section with this name.
    fn add(&mut self, name: &[u8], header: Header) -> Option<()> {
        let at = u32::try_from(self.names.len()).ok()?;
        self.names.extend_from_slice(name);
        self.names.push(0);
        self.headers.push(Header { name: at, ..header });
        Some(())
    }

    /// Appends content, and returns its offset and size.
    fn append(&mut self, bytes: &[u8]) -> Option<(u64, u64)> {
        let padded = self.content.len().checked_next_multiple_of(8)?;
        self.content.resize(padded, 0);
        self.content.extend_from_slice(bytes);
        Some((u64::try_from(padded).ok()?, u64::try_from(bytes.len()).ok()?))
    }

    fn add_symbols(&mut self, table: &[u8], names: &[u8]) -> Option<()> {
        let (offset, size) = self.append(table)?;
        let link = u32::try_from(self.headers.len()).ok()?.checked_add(1)?;
        let symbols = Header { kind: SHT_DYNSYM, flags: 0, offset, size, link, ..Header::empty() };
        self.add(b".dynsym", Header { entry: SYMBOL, ..symbols })?;
        let (offset, size) = self.append(names)?;
        let names = Header { kind: SHT_STRTAB, flags: 0, offset, size, ..Header::empty() };
        self.add(b".dynstr", names)
    }

    /// Appends the names of sections and their headers, and lets the file's header refer to them.
    fn finish(mut self) -> Option<Vec<u8>> {
        let index = u16::try_from(self.headers.len()).ok()?;
        self.add(b".shstrtab", Header { kind: SHT_STRTAB, flags: 0, ..Header::empty() })?;
        let names = std::mem::take(&mut self.names);
        let (offset, size) = self.append(&names)?;
        let last = self.headers.last_mut()?;
        (last.offset, last.size) = (offset, size);
        let mut table = Vec::new();
        for header in &self.headers {
            header.encode(&mut table);
        }
        let (at, _) = self.append(&table)?;
        let count = index.checked_add(1)?;
        // `e_shoff`, and `e_shentsize`, `e_shnum`, `e_shstrndx`.
        self.content.get_mut(0x28..0x30)?.copy_from_slice(&at.to_le_bytes());
        let numbers = [HEADER, count, index].map(u16::to_le_bytes);
        self.content.get_mut(0x3a..0x40)?.copy_from_slice(numbers.as_flattened());
        Some(self.content)
    }
}

impl Header {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self.name.to_le_bytes());
        to.extend(self.kind.0.to_le_bytes());
        for number in [self.flags, self.address, self.offset, self.size] {
            to.extend(number.to_le_bytes());
        }
        // `sh_link`, `sh_info`: all symbols are global ones.
        to.extend(self.link.to_le_bytes());
        to.extend(u32::from(self.kind == SHT_DYNSYM).to_le_bytes());
        // `sh_addralign`, `sh_entsize`.
        to.extend(1_u64.to_le_bytes());
        to.extend(self.entry.to_le_bytes());
    }
}
