//! The files that processes have mapped, and where they have heads of lists.

use std::collections::HashMap;

use gdb_jit_list::Heads;
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
    /// The heads.
    pub heads: Heads,
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
