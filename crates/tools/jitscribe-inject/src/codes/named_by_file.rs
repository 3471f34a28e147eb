//! Decides which code of a jitdump or a perf map is left to the file that it is in.
//!
//! V8's dump has the builtins that lie in node's own executable, whose symbol table names them too. An image that is mapped over them would divide the
//! executable's mapping into thousands, and hide native functions from readers that take one mapping for each file (samply, hotspot). So
//! where a mapped file has a symbol for the address, the file stays.

use std::ops::Range;

use code_timeline::{AddressSpaceId, ranges};

use crate::files::RecordedFiles;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::{MapEvent, RecordingIndex};

/// Tells which code the mapped files of a recording name.
#[derive(Debug)]
pub struct NamedByFile<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    files: &'a RecordedFiles<'a>,
    /// The last address space that was asked about, and where files were ever mapped in it or in those that it was forked from.
    mapped: Option<(AddressSpaceId, Vec<Range<u64>>)>,
    /// How much code was left to files.
    pub count: usize,
}

impl<'a> NamedByFile<'a> {
    /// Files are opened by `files`, when code lies in them.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: &'a RecordedFiles<'a>,
    ) -> Self {
        Self { index, spaces, files, mapped: None, count: 0 }
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
        let map = self.mapping(space, address, time).filter(|map| !map.anonymous);
        let has_name = map.and_then(|map| self.file_names(map, address));
        self.counted(has_name.unwrap_or(false))
    }

    /// The earliest time of code that is only known to have been there at some time, in a process that has files there: when the file was
    /// mapped. `None` if the file has a symbol for it, or cannot be read: the code is left to it.
    pub fn earliest(&mut self, space: AddressSpaceId, address: u64, time: u64) -> Option<u64> {
        let earliest = self.mapping(space, address, time).and_then(|map| match map.anonymous {
            true => Some(0),
            false => {
                let has_name = self.file_names(map, address);
                let is_free =
                    has_name.map_or_else(|| self.files.is_no_object(map.name), |has| !has);
                is_free.then(|| map.time.saturating_add(1))
            }
        });
        self.counted(earliest.is_none());
        earliest
    }

    fn mapping(&self, space: AddressSpaceId, address: u64, time: u64) -> Option<&'a MapEvent> {
        let map = self.spaces.mapping(self.index, space, address, time)?;
        self.index.maps.get(map)
    }

    /// `None` if the file cannot be read as an object file.
    fn file_names(&self, map: &MapEvent, address: u64) -> Option<bool> {
        let symbols = self.files.functions(map.name)?;
        Some(symbols.has_name(address.wrapping_sub(map.above_offset)))
    }

    fn counted(&mut self, has_name: bool) -> bool {
        self.count += usize::from(has_name);
        has_name
    }
}
