//! Decides which code of a jitdump is left to the file that it is in.
//!
//! V8's dump has the builtins that lie in node's own executable, whose symbol table names them too. An image that is mapped over them would divide the
//! executable's mapping into thousands, and hide native functions from readers that take one mapping for each file (samply, hotspot). So
//! where a mapped file has a symbol for the address, the file stays.

use std::collections::HashMap;
use std::ops::Range;

use code_timeline::{AddressSpaceId, ranges};

use super::address_space::AddressSpaces;
use super::files::{FileSymbols, RecordedFiles};
use super::interner::NameId;
use super::recording_index::RecordingIndex;

/// Where the segments of code are in mapped files.
#[derive(Debug, Default)]
pub struct CodeInFiles(HashMap<NameId, Vec<Range<u64>>>);

impl CodeInFiles {
    /// The part of a mapping that a segment of code fills. Mappings begin and end at pages, also where segments do not, and samply rejects a part of a
    /// mapping that reaches beyond the segment.
    ///
    /// `offset` is where `range` begins in the file. A file that was not read, or has no code there, fills the whole mapping.
    pub fn filled(&self, file: NameId, range: &Range<u64>, offset: u64) -> Range<u64> {
        let size = range.end - range.start;
        let of_range = offset..offset.saturating_add(size);
        let parts = self
            .0
            .get(&file)
            .into_iter()
            .flatten()
            .map(|segment| segment.start.max(of_range.start)..segment.end.min(of_range.end));
        let Some(part) =
            parts.filter(|part| !part.is_empty()).max_by_key(|part| part.end - part.start)
        else {
            return range.clone();
        };
        range.start + (part.start - offset)..range.start + (part.end - offset)
    }
}

/// The mapped files of a recording, and their symbols as far as they were asked for.
#[derive(Debug)]
pub struct NamedByFile<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    files: RecordedFiles<'a>,
    symbols: HashMap<NameId, Option<FileSymbols>>,
    /// The last address space that was asked about, and where files were ever mapped in it or in those that it was forked from.
    mapped: Option<(AddressSpaceId, Vec<Range<u64>>)>,
}

impl<'a> NamedByFile<'a> {
    /// Files are opened by `files`, when code lies in them.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: RecordedFiles<'a>,
    ) -> Self {
        Self { index, spaces, files, symbols: HashMap::new(), mapped: None }
    }

    /// Where code is in the files that were asked about.
    pub fn code_in_files(&self) -> CodeInFiles {
        let files = self.symbols.iter();
        let files = files.filter_map(|(&name, file)| Some((name, file.as_ref()?.code().collect())));
        CodeInFiles(files.collect())
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
            self.files.read(self.index.name(map), |file| FileSymbols::read(&file))
        });
        symbols.as_ref().is_some_and(|symbols| symbols.name(address.wrapping_sub(map.above_offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_mappings_end_with_the_segment() {
        let file = NameId::made(1);
        let code = CodeInFiles([(file, vec![0x100..0x1100, 0x1180..0x3456])].into());
        // As mapped: two segments share a page.
        assert_eq!(code.filled(file, &(0x50_0000..0x50_3000), 0x1000), 0x50_0180..0x50_2456);
        assert_eq!(code.filled(file, &(0x50_0200..0x50_0300), 0x1200), 0x50_0200..0x50_0300);
        assert_eq!(code.filled(file, &(0x50_0000..0x50_1000), 0), 0x50_0100..0x50_1000);
        // Without code, and without file.
        assert_eq!(code.filled(file, &(0x50_0000..0x50_1000), 0x4000), 0x50_0000..0x50_1000);
        let unknown = CodeInFiles::default();
        assert_eq!(unknown.filled(file, &(0x50_0000..0x50_1000), 0), 0x50_0000..0x50_1000);
        assert_eq!(
            code.filled(file, &(u64::MAX - 9..u64::MAX), u64::MAX - 3),
            u64::MAX - 9..u64::MAX
        );
    }
}
