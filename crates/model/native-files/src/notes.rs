//! The build-id among the notes of a file.

use jitdump::ReadAt;
use object::Endianness;
use object::elf::NT_GNU_BUILD_ID;
use object::endian::Endian as _;

use crate::pods;

/// Of a segment of notes, no more bytes are read; it has about a hundred.
const LARGEST: u64 = 1 << 16;

/// The build-id among the notes of a segment or section.
pub fn build_id(file: &impl ReadAt, endian: Endianness, offset: u64, size: u64) -> Option<Vec<u8>> {
    let notes = pods::bytes(file, offset, size.min(LARGEST))?;
    let mut rest = notes.as_slice();
    while let Some((head, behind)) = rest.split_at_checked(12) {
        let number = |at: usize| {
            let bytes = head.get(at..)?.first_chunk()?;
            Some(endian.read_u32(*bytes))
        };
        let [name, content] =
            [0, 4].map(|at| number(at).and_then(|size| usize::try_from(size).ok()));
        let (name, behind) = behind.split_at_checked(name?.checked_next_multiple_of(4)?)?;
        let (content, padded) = (content?, content?.checked_next_multiple_of(4)?);
        let all = behind.get(..content)?;
        if number(8)? == NT_GNU_BUILD_ID.0 && name == b"GNU\0" {
            return Some(all.to_vec());
        }
        rest = behind.get(padded..)?;
    }
    None
}
