//! The files that processes have mapped, and where they have heads of lists.

use std::collections::HashMap;

use found_code::Compilers;
use gdb_jit_list::Heads;
use serde::de::DeserializeOwned;
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

/// A file that has compilers whose code can be found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileCompilers {
    /// The file.
    pub file: MappedFile,
    /// The compilers.
    pub compilers: Compilers,
}

/// What files are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sought {
    /// The heads of lists. The answer has a [`FileHeads`] for each file that has some.
    Heads,
    /// Compilers whose code can be found. The answer has a [`FileCompilers`] for each file that has some.
    Compilers,
}

/// What was searched for in files.
pub trait InFile: Clone + DeserializeOwned {
    /// What this is.
    const SOUGHT: Sought;

    /// The file.
    fn file(&self) -> &MappedFile;
}

impl InFile for FileHeads {
    const SOUGHT: Sought = Sought::Heads;

    fn file(&self) -> &MappedFile {
        &self.file
    }
}

impl InFile for FileCompilers {
    const SOUGHT: Sought = Sought::Compilers;

    fn file(&self) -> &MappedFile {
        &self.file
    }
}

/// What is known of files. A large library is searched once, not once for each process.
#[derive(Debug, Default)]
pub struct SearchedFiles {
    /// Their lists.
    pub heads: ByFile<FileHeads>,
    /// Their compilers.
    pub compilers: ByFile<FileCompilers>,
}

/// What is known of files: `None` for those without what was searched for.
#[derive(Debug)]
pub struct ByFile<F>(HashMap<MappedFile, Option<F>>);

impl<F> Default for ByFile<F> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The most files that are remembered.
const REMEMBERED: usize = 1 << 16;

impl<F> ByFile<F> {
    /// What is known of a file; `None` if it has not been searched.
    pub fn get(&self, file: &MappedFile) -> Option<&Option<F>> {
        self.0.get(file)
    }

    /// Remembers what was found in a file.
    pub fn remember(&mut self, file: MappedFile, found: Option<F>) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(file, found);
    }
}
