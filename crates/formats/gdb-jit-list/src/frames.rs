//! The unwind info of an object: its `.eh_frame`.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DwEhPe, EhFrame, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, Section as _, UnwindSection, constants,
};

use crate::elf::{SECTION_NO_BITS, Section, string};
use crate::limits;
use crate::relocated::relocated;

type Reader<'s> = EndianSlice<'s, LittleEndian>;
type Cie<'s> = CommonInformationEntry<Reader<'s>>;
type Fde<'s> = FrameDescriptionEntry<Reader<'s>>;

/// The largest CIE, which is copied for each function. Compilers' have some thirty bytes.
const CIE: usize = 1 << 10;
/// Size of an entry's length, and of what follows it: the distance of its CIE.
const PREFIX: usize = 8;

/// How to unwind from the functions of an object.
#[derive(Debug, Default)]
pub struct Frames {
    /// The `.eh_frame` of one function each, as it is at address 0, and the place and encoding of the field for its address.
    of_function: HashMap<u64, Entries>,
}

/// A CIE, and an FDE that refers to it.
#[derive(Debug)]
struct Entries {
    bytes: Vec<u8>,
    /// Where the FDE has the address of its function.
    field: usize,
    encoding: DwEhPe,
}

impl Frames {
    /// Reads the tables of an object. Damaged parts are skipped.
    pub(crate) fn read(object: &[u8], sections: &[Section], names: &[u8]) -> Self {
        let mut frames = Self::default();
        let is_table = |section: &Section| string(names, section.name) == Some(b".eh_frame");
        let Some(number) = sections.iter().position(is_table) else { return frames };
        let text = sections
            .iter()
            .find(|section| string(names, section.name) == Some(b".text") && section.address != 0);
        let address = sections.get(number).and_then(|table| address(table, text));
        let address = address.unwrap_or_default();
        let Some(bytes) = relocated(object, sections, number, address) else { return frames };
        let bases = BaseAddresses::default().set_eh_frame(address);
        let bases = bases.set_text(text.map_or(0, |text| text.address));
        let table = EhFrame::new(&bytes, LittleEndian);
        // An FDE refers to a CIE before it. So each is read once, whatever the FDEs refer to.
        let mut cies: HashMap<usize, Cie<'_>> = HashMap::new();
        let mut entries = table.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let fde = match entry {
                CieOrFde::Cie(cie) => {
                    cies.insert(cie.offset(), cie);
                    continue;
                }
                CieOrFde::Fde(fde) => fde,
            };
            let fde = fde.parse(|_: &EhFrame<Reader<'_>>, _, at: EhFrameOffset| {
                cies.get(&at.0).cloned().ok_or(gimli::Error::UnknownAugmentation)
            });
            if let Ok(fde) = fde
                && let Some(entries) = Entries::of(&table, &fde)
            {
                frames.of_function.entry(fde.initial_address()).or_insert(entries);
            }
            if frames.of_function.len() == limits::FUNCTIONS {
                break;
            }
        }
        frames
    }

    /// The `.eh_frame` of a function at these addresses, for the position directly behind its code: at its end, rounded up to 8. `None` if the object has none
    /// for it.
    #[must_use]
    pub fn of(&self, function: &Range<u64>) -> Option<Vec<u8>> {
        let entries = self.of_function.get(&function.start)?;
        let mut bytes = entries.bytes.clone();
        let distance = function.end.checked_sub(function.start)?.checked_next_multiple_of(8)?;
        let distance = distance.checked_add(u64::try_from(entries.field).ok()?)?;
        let value = match entries.encoding.application() {
            constants::DW_EH_PE_absptr => function.start,
            constants::DW_EH_PE_pcrel => distance.wrapping_neg(),
            // The function is all of the text that the entries are for.
            constants::DW_EH_PE_textrel => 0,
            _ => return None,
        };
        let size = width(entries.encoding)?;
        let field = bytes.get_mut(entries.field..)?.get_mut(..size)?;
        field.copy_from_slice(value.to_le_bytes().get(..size)?);
        bytes.extend([0; 4]);
        Some(bytes)
    }
}

/// Where a table is. wasmtime's has no address, and is behind the code in the process as in the file.
fn address(table: &Section, text: Option<&Section>) -> Option<u64> {
    match (table.address, text) {
        (0, Some(text)) if text.kind != SECTION_NO_BITS => {
            let distance = table.offset.checked_sub(text.offset)?;
            text.address.checked_add(distance)
        }
        (address, _) => Some(address),
    }
}

/// Size of a pointer that is written with a fixed size.
fn width(encoding: DwEhPe) -> Option<usize> {
    match encoding.format() {
        constants::DW_EH_PE_absptr | constants::DW_EH_PE_udata8 | constants::DW_EH_PE_sdata8 => {
            Some(8)
        }
        constants::DW_EH_PE_udata4 | constants::DW_EH_PE_sdata4 => Some(4),
        _ => None,
    }
}

impl Entries {
    fn of(table: &EhFrame<Reader<'_>>, fde: &Fde<'_>) -> Option<Self> {
        let section = table.reader().slice();
        let cie = fde.cie();
        // Entries of more than 4 GiB have a longer length.
        let entry = |at: usize, length: usize| section.get(at..)?.get(..length.checked_add(4)?);
        let mut bytes = entry(cie.offset(), cie.entry_len())?.to_vec();
        let at = bytes.len();
        if at > CIE {
            return None;
        }
        bytes.extend_from_slice(entry(fde.offset(), fde.entry_len())?);
        let distance = u32::try_from(at.checked_add(4)?).ok()?.to_le_bytes();
        bytes.get_mut(at.checked_add(4)?..)?.get_mut(..4)?.copy_from_slice(&distance);
        let encoding = cie.fde_address_encoding().unwrap_or(constants::DW_EH_PE_absptr);
        Some(Self { bytes, field: at.checked_add(PREFIX)?, encoding })
    }
}
