//! The worker task that lists the files that a process has mapped to run their code, and answers with those that are new.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use crate::foreign::{Output, Target};
use crate::process::logs::nanoseconds;
use crate::process::memory::{Mapping, Mappings};

/// The most files in one answer.
const FILES: usize = 64;
/// The most files of one process.
const ALL_FILES: usize = 4096;

/// The task: list the files of a process, once for each request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCode {
    /// The process.
    pub pid: u32,
}

/// A file that a process has mapped to run its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MappedCode {
    /// Its inode number.
    pub inode: u64,
    /// Its name as the kernel lists it.
    pub name: Vec<u8>,
}

impl MappedCode {
    /// The file of a mapping, if there is one that other programs may read.
    pub fn of(mapping: &Mapping) -> Option<Self> {
        let is_memory = [&b"/dev/zero"[..], b"/anon_hugepage", b"/SYSV"];
        let is_file = mapping.inode != 0
            && mapping.name.starts_with(b"/")
            && !is_memory.iter().any(|name| mapping.name.starts_with(name));
        is_file.then(|| Self { inode: mapping.inode, name: mapping.name.clone() })
    }

    /// Whether no path leads to it: it was deleted, another file was renamed over it, or it never had a path.
    pub fn is_gone(&self) -> bool {
        self.name.ends_with(b" (deleted)") || self.name.starts_with(b"/memfd:")
    }
}

/// An answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Listed {
    /// Files that were not mapped at the request before.
    pub files: Vec<MappedCode>,
    /// Whether any of all its files is gone.
    pub has_gone: bool,
    /// The processor time that this took, in nanoseconds.
    pub took: u64,
}

impl ListCode {
    /// Answers requests until the command sends no more.
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        let owner = target.owner()?;
        let mut mappings = Mappings(target.file("maps", OFlags::RDONLY)?.into());
        if target.owner()? != owner {
            return Err(Errno::SRCH.into());
        }
        owner.lock_down()?;
        let mut known = HashSet::new();
        let mut used = 0;
        while output.wait_for_request() {
            let done = list(&mut mappings, &mut known).and_then(|mut listed| {
                let before = std::mem::replace(&mut used, nanoseconds(ClockId::ProcessCPUTime));
                listed.took = used.saturating_sub(before);
                output.bytes(&serde_json::to_vec(&listed)?)
            });
            output.finish(done)?;
        }
        Ok(())
    }
}

/// Lists the files, and remembers those that are mapped now.
fn list(mappings: &mut Mappings, known: &mut HashSet<MappedCode>) -> io::Result<Listed> {
    let mut listed = Listed::default();
    let mut mapped = HashSet::new();
    mappings.each(|mapping| {
        let file = MappedCode::of(&mapping).filter(|_| mapping.is_executable);
        let Some(file) = file.filter(|file| !mapped.contains(file)) else { return };
        listed.has_gone |= file.is_gone();
        let is_new = !known.contains(&file);
        if is_new && listed.files.len() < FILES {
            listed.files.push(file.clone());
        }
        // What did not fit into this answer is new again at the next request.
        if mapped.len() < ALL_FILES && (!is_new || listed.files.last() == Some(&file)) {
            mapped.insert(file);
        }
    })?;
    *known = mapped;
    Ok(listed)
}

/// The mappings of a file.
#[derive(Debug, Default)]
pub struct PartsOfFile {
    /// The addresses of one that may run.
    pub executable: Option<Range<u64>>,
    /// All that are not writable, with their offsets in the file.
    pub parts: Vec<(Range<u64>, u64)>,
}

/// The most mappings of one file that are read.
const PARTS: usize = 64;

/// The mappings of these files.
pub fn parts(mappings: &mut Mappings, files: &[MappedCode]) -> io::Result<Vec<PartsOfFile>> {
    let mut all: Vec<PartsOfFile> = files.iter().map(|_| PartsOfFile::default()).collect();
    mappings.each(|mapping| {
        let is_it = |file: &MappedCode| file.inode == mapping.inode && file.name == mapping.name;
        let number = files.iter().position(is_it);
        let Some(file) = number.and_then(|number| all.get_mut(number)) else { return };
        if mapping.is_executable {
            file.executable.get_or_insert(mapping.range.clone());
        }
        if file.parts.len() < PARTS {
            file.parts.push((mapping.range, mapping.offset));
        }
    })?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_path_are_gone() {
        let file = |line: &str| MappedCode::of(&Mapping::parse(line.as_bytes()).expect("a line"));
        for (line, is_gone) in [
            ("7f00-7f10 r-xp 00001000 08:01 34 /usr/lib/libc.so.6", false),
            ("7f00-7f10 r-xp 00001000 08:01 34 /tmp/libgccjit-1/fake.so (deleted)", true),
            ("7f00-7f10 r-xp 00001000 00:01 34 /memfd:code (deleted)", true),
            ("7f00-7f10 r-xp 00001000 08:01 34 /tmp/#1234 (deleted)", true),
        ] {
            assert_eq!(file(line).expect(line).is_gone(), is_gone, "{line}");
        }
        for line in [
            "7f00-7f10 r-xp 00000000 00:00 0",
            "7f00-7f10 r-xp 00000000 00:00 0                          [vdso]",
            "7f00-7f10 r-xs 00000000 00:01 34 /dev/zero (deleted)",
            "7f00-7f10 r-xs 00000000 00:01 34 /SYSV00000000 (deleted)",
        ] {
            assert_eq!(file(line), None, "{line}");
        }
    }
}
