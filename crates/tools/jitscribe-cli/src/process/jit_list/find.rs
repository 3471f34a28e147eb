//! The worker task that searches the files that a process has mapped: for the heads of lists, or for compilers whose code can be found.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use found_code::Compilers;
use gdb_jit_list::{Heads, ReadAt};
use rustix::fs::{FileType, OFlags, fstat};
use serde::{Deserialize, Serialize};

use super::files::{FileCompilers, FileHeads, MappedFile, Sought};
use crate::files::{FileSystem, reopen};
use crate::foreign::{Output, Progress, Target};
use crate::process::root::{FOLDER, open_in_root};
use crate::process::source::read_all;

/// The task: search these files. The answer is a list of what was found, in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchFiles {
    /// The process.
    pub pid: u32,
    /// What it has mapped.
    pub files: Vec<MappedFile>,
    /// What is searched for.
    pub sought: Sought,
}

impl SearchFiles {
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        let owner = target.effective()?;
        let top = target.file("root", FOLDER)?;
        // From here on, only what the process's user may read.
        owner.become_this()?;
        let opened: Vec<(&MappedFile, OwnedFd)> =
            self.files.iter().filter_map(|file| Some((file, open(&top, file)?))).collect();
        owner.lock_down()?;
        let progress = Progress::new(output);
        let files = opened
            .iter()
            .map(|(mapped, descriptor)| (*mapped, Descriptor { descriptor, progress: &progress }));
        let found = match self.sought {
            Sought::Heads => {
                let found = files.filter_map(|(mapped, file)| {
                    Some(FileHeads { file: mapped.clone(), heads: Heads::find(&file)? })
                });
                serde_json::to_vec(&found.collect::<Vec<_>>())?
            }
            Sought::Compilers => {
                let found = files.map(|(mapped, file)| FileCompilers {
                    file: mapped.clone(),
                    compilers: Compilers::find(&file),
                });
                let found = found.filter(|found| !found.compilers.is_empty());
                serde_json::to_vec(&found.collect::<Vec<_>>())?
            }
        };
        output.bytes(&found)
    }
}

/// Opens a file if it is the one that was mapped, and on a disk.
fn open(top: &OwnedFd, file: &MappedFile) -> Option<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(&file.path));
    let found = open_in_root(top, path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
    let status = fstat(&found).ok()?;
    let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    // Not the device: on overlayfs and btrfs, the kernel lists another one with the mapping.
    if !is_regular || status.st_ino != file.inode || FileSystem::of(&found) == FileSystem::Kernel {
        return None;
    }
    reopen(&found, OFlags::RDONLY).ok()
}

/// A file or memory behind a descriptor.
pub struct Descriptor<'f, 'o> {
    pub descriptor: &'f OwnedFd,
    pub progress: &'f Progress<'o>,
}

impl ReadAt for Descriptor<'_, '_> {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        self.progress.report();
        read_all(self.descriptor, at, buffer).unwrap_or(0)
    }
}
