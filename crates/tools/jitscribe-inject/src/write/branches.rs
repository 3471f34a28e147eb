//! Targets of branches out of an image.
//!
//! A disassembler shows a target by the nearest symbol before it. For a target outside of the image, that is a function that has nothing to do with it, with
//! a large offset. So the image has a label at each such target, with the name of the function there, or else its address in the process.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use code_timeline::AddressSpaceId;
use jit_code::elf_machine::{AARCH64, X86_64};

use crate::files::RecordedFiles;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// No more labels are made for one image. V8's code calls some hundred builtins.
pub const MOST_TARGETS: usize = 1 << 16;

/// The targets of the direct branches in the code `bytes` at `address`. Where instructions have no fixed length, bytes within others are taken for
/// branches, too.
pub fn targets(machine: u16, bytes: &[u8], address: u64) -> impl Iterator<Item = u64> {
    let of_x86 = (machine == X86_64).then(|| memchr::memchr3_iter(0xe8, 0xe9, 0x0f, bytes));
    let of_aarch64 = (machine == AARCH64).then(|| (0..bytes.len()).step_by(4));
    let places = of_x86.into_iter().flatten().chain(of_aarch64.into_iter().flatten());
    places.filter_map(move |at| {
        let rest = bytes.get(at..)?;
        let (distance, from) = if machine == AARCH64 { aarch64(rest)? } else { x86(rest)? };
        let from = address.wrapping_add(at as u64).wrapping_add(from);
        Some(from.wrapping_add_signed(distance))
    })
}

/// The distance of a direct branch, and from where it counts.
fn x86(code: &[u8]) -> Option<(i64, u64)> {
    let (before, distance) = match code {
        [0xe8 | 0xe9, rest @ ..] => (1, rest),
        [0x0f, 0x80..=0x8f, rest @ ..] => (2, rest),
        _ => return None,
    };
    Some((i32::from_le_bytes(*distance.first_chunk()?).into(), before + 4))
}

fn aarch64(code: &[u8]) -> Option<(i64, u64)> {
    let word = u32::from_le_bytes(*code.first_chunk()?);
    // b and bl: 26 bits, in units of four bytes.
    let is_branch = word & 0x7c00_0000 == 0x1400_0000;
    is_branch.then(|| (i64::from((word << 6).cast_signed() >> 6) * 4, 0))
}

/// Names the functions at addresses outside of images.
#[derive(Debug)]
pub struct TargetNames<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    files: &'a RecordedFiles<'a>,
}

impl<'a> TargetNames<'a> {
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: &'a RecordedFiles<'a>,
    ) -> Self {
        Self { index, spaces, files }
    }

    /// Where anything was ever mapped.
    pub fn mapped(&self, space: AddressSpaceId) -> Vec<Range<u64>> {
        self.spaces.mapped_with_inherited(space)
    }

    /// The names of the functions that begin at these addresses, from the files that were mapped there at the end of the recording.
    pub fn names(
        &self,
        space: AddressSpaceId,
        addresses: &BTreeSet<u64>,
    ) -> BTreeMap<u64, Vec<u8>> {
        let name = |&address: &u64| {
            let map = self.spaces.mapping(self.index, space, address, self.index.last_sample);
            let map = map.and_then(|map| self.index.maps.get(map)).filter(|map| !map.anonymous)?;
            let symbols = self.files.functions(map.name)?;
            Some((address, symbols.name_of_start(address.wrapping_sub(map.above_offset))?))
        };
        addresses.iter().filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: u16, bytes: &[u8]) -> Vec<u64> {
        targets(machine, bytes, 0x1000).collect()
    }

    #[test]
    fn direct_branches_are_found() {
        let code = [0x90, 0xe8, 0xfb, 0x0f, 0, 0, 0x0f, 0x84, 0xf4, 0xff, 0xff, 0xff, 0xc3];
        assert_eq!(of(X86_64, &code), [0x2001, 0x1000]);
        assert!(of(X86_64, &[0xe9, 0, 0]).is_empty());
        let code: Vec<u8> = [0x9400_0002_u32, 0xd503_201f, 0x17ff_ffff]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        assert_eq!(of(AARCH64, &code), [0x1008, 0x1004]);
        assert!(of(243, &code).is_empty());
    }
}
