//! Common information entries (CIEs), which FDEs share.

use fallible::{HashMap, Map, Vec};

use super::Cause;
use super::cursor::Cursor;
use super::instructions::Source;
use super::pointer::Encoding;
use crate::encode::Encoder;
use crate::target::Target;

/// A CIE, as far as needed to read the FDEs that refer to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cie {
    /// Its number among the CIEs to be written.
    pub(super) number: usize,
    /// Number of bytes per unit of an advance.
    pub(super) code_alignment: u64,
    /// The encoding of addresses in the FDEs.
    pub(super) encoding: Encoding,
    pub(super) has_augmentation_data: bool,
}

/// The CIEs of all codes. Each is read and written once, regardless of how many codes contain it and how many FDEs
/// refer to it.
#[derive(Debug, Clone)]
pub(super) struct CieTable {
    /// The encoding of addresses in the output.
    encoding: Encoding,
    /// The content to be written, by number, without length and id.
    pub(super) written: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, usize>,
    /// The CIEs read so far.
    read: Vec<Result<Cie, Cause>>,
    /// Where they are in `read`, by their bytes in the input.
    by_source: HashMap<Vec<u8>, usize>,
    /// Where those of the current section are in `read`, by the section's number and their offset. The crate has another map of these
    /// types, and each type of map takes kilobytes of code.
    by_offset: Map<(usize, u64), usize>,
    /// The number of the current section.
    section: usize,
}

impl CieTable {
    pub(super) fn new(encoding: Encoding) -> Self {
        let (written, numbers) = (Vec::new(), HashMap::new());
        let (read, by_source, by_offset) = (Vec::new(), HashMap::new(), Map::new());
        CieTable { encoding, written, numbers, read, by_source, by_offset, section: 0 }
    }

    /// Begins another section.
    pub(super) fn begin_section(&mut self) {
        self.section = self.section.saturating_add(1);
        self.by_offset.clear();
    }

    /// The CIE at `offset` in `section`, which describes code from `text` on.
    pub(super) fn get(
        &mut self,
        target: Target,
        section: Cursor<'_>,
        offset: u64,
        text: u64,
    ) -> Result<Cie, Cause> {
        let place = (self.section, offset);
        if let Some(known) = self.by_offset.get(&place).and_then(|at| self.read.get(*at)) {
            return *known;
        }
        let (cie, at) = match self.find(target, section, offset, text) {
            Ok(at) => (self.read.get(at).copied().unwrap_or(Err(Cause::Malformed)), at),
            Err(cause) => (Err(cause), self.keep(Err(cause))),
        };
        self.by_offset.insert(place, at);
        cie
    }

    /// Adds what was read.
    fn keep(&mut self, cie: Result<Cie, Cause>) -> usize {
        self.read.push(cie);
        self.read.len().saturating_sub(1)
    }

    /// Where the CIE at `offset` is in `read`. An error means that there is no entry of its form.
    fn find(
        &mut self,
        target: Target,
        mut section: Cursor<'_>,
        offset: u64,
        text: u64,
    ) -> Result<usize, Cause> {
        section.split(offset)?;
        let Some((_, 0, body)) = entry(&mut section)? else { return Err(Cause::Malformed) };
        if let Some(known) = self.by_source.get(body.rest()) {
            return Ok(*known);
        }
        let encoding = self.encoding;
        let cie = Cie::read(target, body, text, encoding, |bytes| self.number(bytes));
        let at = self.keep(cie);
        self.by_source.insert(Vec::from(body.rest()), at);
        Ok(at)
    }

    /// The number of the CIE with this content.
    pub(super) fn number(&mut self, written: Vec<u8>) -> usize {
        let all = &mut self.written;
        self.numbers.find_or_insert(written, |bytes| {
            all.push(bytes.clone());
            all.len().saturating_sub(1)
        })
    }
}

impl Cie {
    /// Reads the CIE whose id precedes `body`, and encodes it again: with addresses in the encoding `written_as`, and
    /// without personality routine and language data, which have no meaning outside the process. `number` returns its
    /// number.
    fn read(
        target: Target,
        mut body: Cursor<'_>,
        text: u64,
        written_as: Encoding,
        number: impl FnOnce(Vec<u8>) -> usize,
    ) -> Result<Cie, Cause> {
        const VERSION_WITH_SHORT_REGISTER: u8 = 1;
        const VERSION_WITH_ANY_REGISTER: u8 = 3;

        let version = body.u8()?;
        if ![VERSION_WITH_SHORT_REGISTER, VERSION_WITH_ANY_REGISTER].contains(&version) {
            return Err(Cause::Unsupported);
        }
        let augmentation = body.string()?;
        let code_alignment = body.uleb()?;
        let data_alignment = body.sleb()?;
        let return_register =
            if version == VERSION_WITH_SHORT_REGISTER { body.u8()?.into() } else { body.uleb()? };

        let mut encoding = Encoding::ADDRESS;
        let mut marks = Vec::new();
        let has_augmentation_data = !augmentation.is_empty();
        if let Some((&first, letters)) = augmentation.split_first() {
            if first != b'z' {
                return Err(Cause::Unsupported);
            }
            let len = body.uleb()?;
            let mut data = body.split(len)?;
            for &letter in letters {
                match letter {
                    b'R' => encoding = Encoding(data.u8()?),
                    b'L' => drop(data.u8()?),
                    b'P' => Encoding(data.u8()?).skip(&mut data)?,
                    // signal frame; AArch64: pointers signed by key B, memory tagged
                    b'S' | b'B' | b'G' if !marks.contains(&letter) => marks.push(letter),
                    _ => return Err(Cause::Unsupported),
                }
            }
        }

        let mut out = Encoder::new(target);
        let short_register = u8::try_from(return_register);
        out.u8(match short_register {
            Ok(_) => VERSION_WITH_SHORT_REGISTER,
            Err(_) => VERSION_WITH_ANY_REGISTER,
        });
        out.raw(b"zR");
        out.string(&marks);
        out.uleb(1); // an advance counts in bytes
        out.sleb(data_alignment);
        match short_register {
            Ok(register) => out.u8(register),
            Err(_) => out.uleb(return_register),
        }
        out.uleb(1); // length of the augmentation data
        out.u8(written_as.0);
        let source = Source { target, instructions: body, unit: code_alignment, encoding, text };
        source.copy_initial(&mut out)?;
        Ok(Cie { number: number(out.bytes), code_alignment, encoding, has_augmentation_data })
    }
}

/// Splits off the next entry, a CIE or an FDE: the address of its id, the id, and what follows. `None` = terminator.
pub(super) fn entry<'a>(rest: &mut Cursor<'a>) -> Result<Option<(u64, u32, Cursor<'a>)>, Cause> {
    const LONG: u32 = u32::MAX;
    let len = match rest.u32()? {
        0 => return Ok(None),
        LONG => rest.u64()?,
        len => len.into(),
    };
    let mut body = rest.split(len)?;
    let id_address = body.address();
    let id = body.u32()?; // four bytes, whatever the size of the length is
    Ok(Some((id_address, id, body)))
}
