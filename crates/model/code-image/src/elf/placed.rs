//! Code at its own addresses, for disassemblers.

use fallible::Vec;

use super::headers::{self, Section};
use super::symbols::SymbolTable;
use crate::encode::Encoder;
use crate::error::Error;
use crate::functions::Functions;
use crate::target::Target;

/// Code with smaller gaps is in one section, so that there are never more than a few thousand sections.
const GAP: u64 = 0x1000;
/// Section indices from 0xff00 on are reserved.
const MOST: usize = 0xf000;

/// An object file whose sections have the addresses of the code in the process, so that an address from a profile can
/// be looked up in it unchanged: `objdump -d --start-address=…`.
///
/// It has symbols and the code's bytes, but nothing for mapping or debugging; [`ImageWriter`] writes such files.
///
/// [`ImageWriter`]: crate::ImageWriter
///
/// ```
/// use code_image::{Endian, PlacedImage, Target};
/// let mut image = PlacedImage::new(Target::new(62 /* EM_X86_64 */, Endian::Little));
/// image.add(0x7f00_0000_0040, b"answer", &[0x6a, 42, 0x58, 0xc3]);
/// assert_eq!(image.finish()?.get(..4), Some(&b"\x7fELF"[..]));
/// # Ok::<(), code_image::Error>(())
/// ```
#[derive(Debug)]
pub struct PlacedImage {
    target: Target,
    symbols: SymbolTable,
    text: Vec<u8>,
    /// The contiguous runs of code, each with its address and its position in `text`.
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    address: u64,
    begin: usize,
    size: u64,
}

impl PlacedImage {
    /// An image without code.
    pub fn new(target: Target) -> Self {
        Self { target, symbols: SymbolTable::new(target), text: Vec::new(), runs: Vec::new() }
    }

    /// Adds a code. Codes must be added in ascending order without overlap. A code is left out if it begins before
    /// the end of the last one, has no bytes, extends past the end of the address space, or would need more sections
    /// than possible.
    pub fn add(&mut self, address: u64, name: &[u8], bytes: &[u8]) {
        let size = bytes.len() as u64;
        let end = self.runs.last().map_or(0, |run| run.address.saturating_add(run.size));
        if bytes.is_empty() || address < end || address.checked_add(size).is_none() {
            return;
        }
        let gap = address.saturating_sub(end);
        let is_full = self.runs.len() >= MOST;
        match self.runs.last_mut().filter(|_| gap <= GAP) {
            Some(run) => {
                run.size = run.size.saturating_add(gap).saturating_add(size);
                self.text.resize(self.text.len().saturating_add(gap as usize), 0);
            }
            None if is_full => return,
            None => self.runs.push(Run { address, begin: self.text.len(), size }),
        }
        self.text.extend_from_slice(bytes);
        // The section's index, counted behind the null section.
        let section = self.runs.len() as u16;
        let mut function = Functions::default();
        function.add(address, size, name);
        self.symbols.append(&mut function, section);
    }

    /// Whether no code was added.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it exceeds the target's address size.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        const NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
        let name = |name: &[u8]| {
            let place = NAMES.windows(name.len()).position(|window| window == name);
            place.map_or(0, |place| place as u32)
        };
        let Self { target, symbols, text, runs } = self;
        // The file's header, the sections' bytes, the section header table.
        let mut head = Encoder::new(target);
        headers::file_header(&mut head, target, &[], 0, 0);
        let text_offset = (head.bytes.len() as u64).next_multiple_of(16);
        let symtab_offset = text_offset.saturating_add(text.len() as u64).next_multiple_of(8);
        let strtab_offset = symtab_offset.saturating_add(symbols.symtab.bytes.len() as u64);
        let names_offset = strtab_offset.saturating_add(symbols.strtab.len() as u64);
        let table_offset = names_offset.saturating_add(NAMES.len() as u64).next_multiple_of(8);
        let limit = if target.is_64 { u64::MAX >> 1 } else { u64::from(u32::MAX) };
        if table_offset > limit || symbols.strtab.len() as u64 > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "file", size: table_offset });
        }

        let mut table = Encoder::new(target);
        headers::section_header(&mut table, &Section::default(), 0);
        for run in &runs {
            let section = Section {
                name: ".text",
                kind: headers::SHT_PROGBITS,
                flags: headers::SHF_ALLOC | headers::SHF_EXECINSTR,
                address: run.address,
                offset: text_offset.saturating_add(run.begin as u64),
                size: run.size,
                align: 1,
                ..Section::default()
            };
            headers::section_header(&mut table, &section, name(b".text\0"));
        }
        let strtab_index = (runs.len() as u32).saturating_add(2);
        let symtab = Section {
            name: ".symtab",
            kind: headers::SHT_SYMTAB,
            offset: symtab_offset,
            size: symbols.symtab.bytes.len() as u64,
            link: strtab_index,
            info: 1, // the first global symbol: all but the null symbol are
            align: 8,
            entry_size: headers::symbol_size(target),
            ..Section::default()
        };
        headers::section_header(&mut table, &symtab, name(b".symtab\0"));
        for (what, offset, size) in [
            (&b".strtab\0"[..], strtab_offset, symbols.strtab.len()),
            (b".shstrtab\0", names_offset, NAMES.len()),
        ] {
            let section = Section {
                kind: headers::SHT_STRTAB,
                offset,
                size: size as u64,
                align: 1,
                ..Section::default()
            };
            headers::section_header(&mut table, &section, name(what));
        }

        let mut file = Encoder::new(target);
        let sections = runs.len().saturating_add(4) as u16;
        headers::file_header(&mut file, target, &[], table_offset, sections);
        let mut file = file.bytes;
        for (offset, bytes) in [
            (text_offset, text.as_slice()),
            (symtab_offset, &symbols.symtab.bytes),
            (strtab_offset, &symbols.strtab),
            (names_offset, NAMES),
            (table_offset, &table.bytes),
        ] {
            file.resize(offset as usize, 0);
            file.extend_from_slice(bytes);
        }
        Ok(file)
    }
}
