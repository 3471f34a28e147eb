//! Decides which code of a jitdump is left to the file that it is in.
//!
//! V8's dump has the builtins that lie in node's own executable, whose symbol table names them too. An image that is mapped over them would divide the
//! executable's mapping into thousands, and hide native functions from readers that take one mapping for each file (samply, hotspot). So
//! where a mapped file has a symbol for the address, the file stays.

use std::ops::Range;

use code_timeline::{AddressSpaceId, ranges};

use super::address_space::AddressSpaces;
use super::files::RecordedFiles;
use super::recording_index::RecordingIndex;

/// Tells which code the mapped files of a recording name.
#[derive(Debug)]
pub struct NamedByFile<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    files: &'a RecordedFiles<'a>,
    /// The last address space that was asked about, and where files were ever mapped in it or in those that it was forked from.
    mapped: Option<(AddressSpaceId, Vec<Range<u64>>)>,
}

impl<'a> NamedByFile<'a> {
    /// Files are opened by `files`, when code lies in them.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: &'a RecordedFiles<'a>,
    ) -> Self {
        Self { index, spaces, files, mapped: None }
    }

    /// Whether the file that is mapped at `address` at `time` has a symbol for it.
    pub fn has(&mut self, space: AddressSpaceId, address: u64, time: u64) -> bool {
        if self.mapped.as_ref().is_none_or(|(of, _)| *of != space) {
            self.mapped = Some((space, self.spaces.files_with_inherited(space)));
        }
        let mapped = self.mapped.as_ref().map_or(&[][..], |(_, files)| files);
        if ranges::overlapping(mapped, &(address..address.saturating_add(1))).is_empty() {
            return false;
        }
        let map = self.spaces.mapping(self.index, space, address, time);
        let map = map.and_then(|map| self.index.maps.get(map));
        let Some(map) = map.filter(|map| !map.anonymous) else { return false };
        let symbols = self.files.functions(map.name);
        symbols.is_some_and(|symbols| symbols.has_name(address.wrapping_sub(map.above_offset)))
    }
}
