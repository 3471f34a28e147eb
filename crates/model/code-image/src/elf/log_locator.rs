//! A log locator: an entry in a debugger's list of object files that shows no code, and locates the process's code log.

use fallible::Vec;

use super::headers::{self, Section};
use crate::encode::Encoder;
use crate::target::Target;

/// The only section, which is not part of the process's memory: two 64-bit words with the log's address and its
/// maximum size.
pub const LOG_LOCATOR_SECTION: &str = ".jitscribe.log";

/// Encodes a symbol file without code, which records that a code log may use the `size` bytes from `address` on.
///
/// Readers that do not know the section see an empty object file. `docs/format.md` of the project specifies the
/// content of the log.
#[must_use]
pub fn log_locator(target: Target, address: u64, size: u64) -> Vec<u8> {
    let names = fallible::text!("\0{LOG_LOCATOR_SECTION}\0.shstrtab\0");
    let names_of_names = (LOG_LOCATOR_SECTION.len() as u32).saturating_add(2);
    let sections = headers::file_header_size(target);
    let words = sections.saturating_add(headers::section_header_size(target).saturating_mul(3));
    let log = Section {
        kind: headers::SHT_PROGBITS,
        offset: words as u64,
        size: 16,
        align: 8,
        ..Section::default()
    };
    let names_section = Section {
        kind: headers::SHT_STRTAB,
        offset: log.offset.saturating_add(log.size),
        size: names.len() as u64,
        align: 1,
        ..Section::default()
    };
    let mut out = Encoder::new(target);
    headers::file_header(&mut out, target, &[], sections as u64, 3);
    headers::section_header(&mut out, &Section::default(), 0);
    headers::section_header(&mut out, &log, 1);
    headers::section_header(&mut out, &names_section, names_of_names);
    out.u64(address);
    out.u64(size);
    out.raw(names.as_bytes());
    out.bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use object::{Object, ObjectSection};

    use super::*;
    use crate::target::Endian;

    #[test]
    fn the_words_are_found_by_the_name_of_the_section() {
        for machine in [62, 40] {
            for endian in [Endian::Little, Endian::Big] {
                let bytes = log_locator(Target::new(machine, endian), 0x7f12_3456_7000, 64 << 20);
                let file = object::File::parse(&*bytes).unwrap();
                let words = file.section_by_name(LOG_LOCATOR_SECTION).unwrap().data().unwrap();
                let word = |at: usize| {
                    let bytes: [u8; 8] = words[at..at + 8].try_into().unwrap();
                    match endian {
                        Endian::Little => u64::from_le_bytes(bytes),
                        Endian::Big => u64::from_be_bytes(bytes),
                    }
                };
                assert_eq!((words.len(), word(0), word(8)), (16, 0x7f12_3456_7000, 64 << 20));
                assert_eq!(file.symbols().count(), 0);
            }
        }
    }
}
