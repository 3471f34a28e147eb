//! Decides which code of a jitdump or a perf map is left to the file that it is in.
//!
//! V8's dump has the builtins that lie in node's own executable, whose symbol table names them too. An image that is mapped over them would divide the
//! executable's mapping into thousands, and hide native functions from readers that take one mapping for each file (samply, hotspot). So
//! where a mapped file has a symbol for the address, the file stays.
//!
//! A recording that was injected before has images for files. What they name stays too, but for inferred names, which never take the place of an announced
//! one.

use std::ops::Range;

use code_timeline::{AddressSpaceId, ranges};
use perf_data::FileIdentity;

use super::inferred_name::is_inferred;
use crate::files::{RecordedFiles, pid_of_perf_image};
use crate::interner::NameId;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::{MapEvent, RecordingIndex};
use crate::warning::FileHasCode;

/// Tells which code the mapped files of a recording name.
#[derive(Debug)]
pub struct NamedByFile<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    files: &'a RecordedFiles<'a>,
    /// The last address space that was asked about, and where files were ever mapped in it or in those that it was forked from.
    mapped: Option<(AddressSpaceId, Vec<Range<u64>>)>,
    /// The code that was left to files since this was taken last.
    left: LeftToFiles,
}

/// Code that was left to files.
#[derive(Clone, Debug, Default)]
pub struct LeftToFiles {
    /// Number of codes.
    pub codes: usize,
    /// Number of those that files of `perf inject --jit` name.
    pub named_by_perf: usize,
    /// The first other file, and why it has the code.
    pub first: Option<(NameId, FileHasCode)>,
}

impl<'a> NamedByFile<'a> {
    /// Files are opened by `files`, when code lies in them.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: &'a RecordedFiles<'a>,
    ) -> Self {
        Self { index, spaces, files, mapped: None, left: LeftToFiles::default() }
    }

    /// The code that was left to files since the last call.
    pub fn take_left(&mut self) -> LeftToFiles {
        std::mem::take(&mut self.left)
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
        // Of a file that cannot be read, the dump has the code itself.
        let has_code = map.zip(map.and_then(|map| self.file_has_code(map, address)));
        let has_code = has_code.filter(|(_, why)| *why != FileHasCode::Unreadable);
        self.count(has_code);
        has_code.is_some()
    }

    /// The earliest time of code that is only known to have been there at some time, in a process that has files there: when the file was
    /// mapped. `None` if the code is left to the file: it has a symbol for it, or may have one and cannot be read.
    pub fn earliest(&mut self, space: AddressSpaceId, address: u64, time: u64) -> Option<u64> {
        let map = self.mapping(space, address, time)?;
        if map.anonymous {
            return Some(0);
        }
        if let Some(why) = self.file_has_code(map, address) {
            self.count(Some((map, why)));
            return None;
        }
        // An image may be mapped at any time in memory that was there before.
        Some(if map.jitted { 0 } else { map.time.saturating_add(1) })
    }

    /// Since when the memory at `address` is mapped as it is at `time`.
    pub fn unchanged_since(&self, space: AddressSpaceId, address: u64, time: u64) -> u64 {
        let since = self.spaces.around(self.index, space, address, time).times.start;
        since.saturating_add(u64::from(since > 0))
    }

    fn mapping(&self, space: AddressSpaceId, address: u64, time: u64) -> Option<&'a MapEvent> {
        let map = self.spaces.mapping(self.index, space, address, time)?;
        self.index.maps.get(map)
    }

    /// Why code is left to the file that is mapped at its address; `None` if it is not.
    fn file_has_code(&self, map: &MapEvent, address: u64) -> Option<FileHasCode> {
        // A library that was gone while it ran is a compiler's, as libgccjit's: what the program says of it is more than its symbols do.
        if map.renamed {
            return None;
        }
        let path = self.index.name(map);
        // It has one code, and there may be more of these files than can be open.
        if pid_of_perf_image(path).is_some() {
            return self.files.is_there(map.name).then_some(FileHasCode::Symbol);
        }
        let offset = address.wrapping_sub(map.above_offset);
        let Some(functions) = self.files.functions(map.name) else {
            let is_object = matches!(map.file, Some(FileIdentity::BuildId(_)));
            let is_left = !map.jitted && (is_object || !self.files.is_no_object(map.name));
            return is_left.then_some(FileHasCode::Unreadable);
        };
        // No linker or loader has seen it: it is a runtime's cache of compiled code, and the runtime's own description says more.
        if functions.elf().is_unplaced() {
            return None;
        }
        match map.jitted {
            false => functions.has_name(offset).then_some(FileHasCode::Symbol),
            true => {
                let name = functions.name(offset)?;
                (!is_inferred(&name)).then_some(FileHasCode::Image)
            }
        }
    }

    fn count(&mut self, left: Option<(&MapEvent, FileHasCode)>) {
        let Some((map, why)) = left else { return };
        self.left.codes += 1;
        match pid_of_perf_image(self.index.name(map)) {
            Some(_) => self.left.named_by_perf += 1,
            None => self.left.first = self.left.first.or(Some((map.name, why))),
        }
    }
}
