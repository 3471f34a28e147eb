//! The programs and libraries of guests: which function and line is at a guest address.

use std::collections::HashMap;

use code_timeline::AddressSpaceId;
use native_files::{Functions, Lines, SourceFrame};

use crate::files::{RecordedFiles, RecordedFunctions, SourceFile, base_name};
use crate::interner::NameId;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// The mapped files of a recording, read when a guest's code is in them.
#[derive(Debug)]
pub struct GuestFiles<'a> {
    index: &'a RecordingIndex,
    spaces: &'a AddressSpaces,
    recorded: &'a RecordedFiles<'a>,
    read: HashMap<NameId, Option<GuestFile>>,
}

#[derive(Debug)]
struct GuestFile {
    base_name: Vec<u8>,
    functions: RecordedFunctions,
    /// The symbols that distributions install separately.
    separate: Option<Functions<SourceFile>>,
    lines: Option<Lines>,
}

/// What is at a guest address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPlace {
    /// The function's name; for code without a symbol, the file and the address in it.
    pub function: Vec<u8>,
    /// Whether a symbol names it.
    pub has_symbol: bool,
    /// The functions of the source, the innermost first; empty if unknown.
    pub frames: Vec<SourceFrame>,
}

impl<'a> GuestFiles<'a> {
    /// Files are opened when code lies in them.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        recorded: &'a RecordedFiles<'a>,
    ) -> Self {
        Self { index, spaces, recorded, read: HashMap::new() }
    }

    /// What is at the guest address of a process at `time`. `None` if no file that can be read is mapped there.
    pub fn place(&mut self, space: AddressSpaceId, address: u64, time: u64) -> Option<GuestPlace> {
        let map = self.spaces.mapping(self.index, space, address, time)?;
        let map = self.index.maps.get(map).filter(|map| !map.anonymous)?;
        let Self { index, recorded, read, .. } = self;
        let path = index.name(map);
        let file =
            read.entry(map.name).or_insert_with(|| GuestFile::read(recorded, map.name, path));
        file.as_ref()?.place(address.wrapping_sub(map.above_offset))
    }
}

impl GuestFile {
    fn read(recorded: &RecordedFiles<'_>, name: NameId, path: &[u8]) -> Option<Self> {
        let functions = recorded.functions(name)?;
        // A file whose debug information cannot be read has names.
        let (lines, separate) = recorded.debug_info(name);
        Some(Self { base_name: base_name(path).to_vec(), functions, separate, lines })
    }

    /// What is at an offset in the file.
    fn place(&self, offset: u64) -> Option<GuestPlace> {
        let address = self.functions.address(offset)?;
        let frames = self.lines.as_ref().map_or(Vec::new(), |lines| lines.frames(address));
        let separate = || self.separate.as_ref()?.name_at(address);
        let symbol = self.functions.name_at(address).or_else(separate);
        let symbol = symbol.filter(|name| !name.is_empty());
        let has_symbol = symbol.is_some();
        let function = symbol
            .unwrap_or_else(|| [&self.base_name, format!("+{address:#x}").as_bytes()].concat());
        Some(GuestPlace { function, has_symbol, frames })
    }
}
