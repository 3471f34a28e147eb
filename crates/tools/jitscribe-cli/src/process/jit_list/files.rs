//! The files that processes have mapped, and where they have heads of lists.

use std::collections::HashMap;
use std::ops::Range;

use gdb_jit_list::{Heads, Segment};
use serde::{Deserialize, Serialize};

/// A file that a process has mapped to run its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MappedFile {
    /// Its device, as in the list of mappings.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
    /// Its path, as the process sees it.
    pub path: Vec<u8>,
}

/// A file that has heads of lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileHeads {
    /// The file.
    pub file: MappedFile,
    /// The addresses of the heads, by the file.
    addresses: Vec<u64>,
    /// Its executable segments: offset, size, address.
    segments: Vec<[u64; 3]>,
}

impl FileHeads {
    pub fn new(file: MappedFile, heads: &Heads) -> Self {
        let segments = heads.segments.iter();
        let segments = segments.map(|one| [one.offset, one.size, one.address]).collect();
        Self { file, addresses: heads.addresses.clone(), segments }
    }

    /// The addresses of the heads in a process that has mapped the file's code there from this offset on.
    pub fn in_process(&self, mapped: Range<u64>, offset: u64) -> Vec<u64> {
        let segments = self.segments.iter();
        let segment = |&[offset, size, address]: &[u64; 3]| Segment { offset, size, address };
        let heads =
            Heads { addresses: self.addresses.clone(), segments: segments.map(segment).collect() };
        heads.in_process(mapped, offset).collect()
    }
}

/// What is known of files: `None` for those without a list. A large library is searched once, not once for each process.
#[derive(Debug, Default)]
pub struct HeadsByFile(HashMap<MappedFile, Option<FileHeads>>);

/// The most files that are remembered.
const REMEMBERED: usize = 1 << 16;

impl HeadsByFile {
    /// What is known of a file; `None` if it has not been searched.
    pub fn get(&self, file: &MappedFile) -> Option<&Option<FileHeads>> {
        self.0.get(file)
    }

    /// Remembers what was found in a file.
    pub fn remember(&mut self, file: MappedFile, heads: Option<FileHeads>) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(file, heads);
    }
}
