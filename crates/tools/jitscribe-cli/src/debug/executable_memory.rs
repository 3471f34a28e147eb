//! The executable memory of a process without a file, in which code may be that nothing announces.

use std::collections::BTreeSet;
use std::ops::Range;

use code_timeline::ranges;

use crate::process::{Core, Mapping};

/// Executable memory without a file, and the files that are mapped.
#[derive(Debug, Default)]
pub struct ExecutableMemory {
    /// Sorted by address.
    anonymous: Vec<Range<u64>>,
    files: BTreeSet<Vec<u8>>,
}

impl ExecutableMemory {
    /// That of a running process.
    pub fn of_process(mappings: &[Mapping]) -> Self {
        let is_anonymous = |mapping: &&Mapping| mapping.is_executable && mapping.is_anonymous();
        let mut anonymous: Vec<Range<u64>> =
            mappings.iter().filter(is_anonymous).map(|mapping| mapping.first.clone()).collect();
        anonymous.sort_by_key(|range| range.start);
        let of_files = mappings.iter().filter(|mapping| mapping.name.starts_with(b"/"));
        let files = of_files.map(|mapping| mapping.path().to_owned()).collect();
        Self { anonymous, files }
    }

    /// That of a core file.
    pub fn of_core(core: &Core) -> Self {
        let anonymous = core.anonymous_code().collect();
        Self { anonymous, files: core.notes().files.iter().map(|file| file.path.clone()).collect() }
    }

    /// Whether code at this address is in it.
    pub fn contains(&self, address: u64) -> bool {
        ranges::contain(&self.anonymous, address)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.anonymous.is_empty()
    }

    /// The paths of the mapped files.
    pub fn files(&self) -> impl Iterator<Item = &[u8]> {
        self.files.iter().map(Vec::as_slice)
    }
}
