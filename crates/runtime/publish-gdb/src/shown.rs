//! Files in the list, and the codes that are shown.

use std::ops::Range;

use code_image::Symfile;
use fallible::Vec;

use crate::descriptor::Entry;

/// A file that the runtime made of a code. It is shown at once, and as it is.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) entry: Entry,
    pub(crate) bytes: Vec<u8>,
}

/// A file in the list.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) symfile: Symfile,
    pub(crate) entry: Entry,
    pub(crate) is_stale: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    pub(crate) end: u64,
    pub(crate) key: u64,
    /// Its number among the waiting codes, if it still waits; [`GIVEN`] if its file is the runtime's.
    pub(crate) number: u64,
}

/// No number of a waiting code.
pub(crate) const GIVEN: u64 = u64::MAX;

/// Makes an ELF file one without sections and segments. Other files are left as they are.
pub(crate) fn clear_sections(file: &mut [u8]) {
    // The offsets and the numbers in the header, by its class: those of program headers, and those of section headers.
    let ranges: [Range<usize>; 2] = match file {
        [0x7f, b'E', b'L', b'F', 1, ..] => [28..36, 44..52],
        [0x7f, b'E', b'L', b'F', 2, ..] => [32..48, 56..64],
        _ => return,
    };
    for range in ranges {
        // What is between the numbers is the size of a header, which then has no meaning.
        if let Some(field) = file.get_mut(range) {
            field.fill(0);
        }
    }
}
