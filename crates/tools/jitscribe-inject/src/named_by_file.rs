//! Decides which code of a jitdump is left to the file that it is in.
//!
//! V8's dump has the builtins that lie in node's own executable, whose symbol table names them too. An image that is mapped over them would divide the
//! executable's mapping into thousands, and hide native functions from readers that take one mapping for each file (samply, hotspot). So
//! where a mapped file has a symbol for the address, the file stays.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use code_timeline::{AddressSpaceId, ranges};
use perf_data::BuildId;

use super::address_space::AddressSpaces;
use super::files::{FileSymbols, SourceFiles, is_build_id};
use super::interner::NameId;
use super::recording_index::RecordingIndex;

/// The mapped files of a recording, and their symbols as far as they were asked for.
#[derive(Debug)]
pub struct NamedByFile<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    files: &'a dyn SourceFiles,
    /// The recorded build-ids, by path.
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    symbols: HashMap<NameId, Option<FileSymbols>>,
    /// The last address space that was asked about, and where files were ever mapped in it or in those that it was forked from.
    mapped: Option<(AddressSpaceId, Vec<Range<u64>>)>,
}

impl<'a> NamedByFile<'a> {
    /// Files are opened by `files`, when code lies in them.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        build_ids: Vec<BuildId>,
        files: &'a dyn SourceFiles,
    ) -> Self {
        let build_ids = build_ids.into_iter().map(|file| (file.filename, file.id)).collect();
        Self { index, spaces, files, build_ids, symbols: HashMap::new(), mapped: None }
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
        let symbols = self.symbols.entry(map.name).or_insert_with(|| {
            let name = self.index.name(map);
            let path = Path::new(OsStr::from_bytes(name));
            let file = self.files.open(path, None).ok()?;
            let symbols = FileSymbols::read(&file).ok()?;
            // Not if it was replaced since, or is another machine's.
            let recorded = self.build_ids.get(name).map(Vec::as_slice);
            let is_same = recorded.is_none_or(|id| is_build_id(id, symbols.build_id()));
            is_same.then_some(symbols)
        });
        symbols.as_ref().is_some_and(|symbols| symbols.name(address.wrapping_sub(map.above_offset)))
    }
}
