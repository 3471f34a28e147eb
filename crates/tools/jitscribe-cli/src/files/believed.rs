//! Which files are trusted, among those that were found rather than named by the user.
//!
//! A perf map is found by its name, `/tmp/perf-PID.map`. Any user can create a file of that name, with names for code of another
//! user's process. perf trusts maps of root and of its own user. So do we. Because recordings are often made by root, we also
//! trust files of the user that the process runs as, but only if the process is known to be that user's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use jitscribe_inject::files::{SourceFile, SourceFiles, Untrusted};
use rustix::process::geteuid;

use super::{Inode, facts, is_file, jitdump_pid, open_owned_by, open_source, same_file};
use crate::foreign;
use crate::process;

/// The rules for which files are trusted.
#[derive(Debug, Default)]
pub struct Believed {
    /// Folders that the user named: files in them count as named.
    folders: Vec<PathBuf>,
    /// Users whose files are trusted for every process.
    users: Vec<u32>,
    /// The users of processes, as noted during the recording.
    noted: BTreeMap<u32, u32>,
    /// Whether the recording was made on this machine.
    is_here: bool,
    /// The end of the recording. A process that started later is not the recorded one.
    until: Option<SystemTime>,
}

/// An upper bound for the rounding of file and process times.
const ROUNDED: Duration = Duration::from_millis(500);

impl Believed {
    /// The rules for the recording or output file `input`; `None` for standard input. Files of the owner of `input` are trusted,
    /// because that user could have written anything into `input` itself. `noted` are the users of processes as seen during the
    /// recording, `is_here` is whether it was made on this machine, and `folders` are those that the user named.
    pub fn about(
        input: Option<&Path>,
        noted: &BTreeMap<u32, u32>,
        is_here: bool,
        folders: &[PathBuf],
    ) -> Self {
        let mut users = vec![0, geteuid().as_raw()];
        // The user who became root through sudo to run this command.
        let sudo = std::env::var("SUDO_UID").ok().filter(|_| geteuid().is_root());
        users.extend(sudo.and_then(|user| user.parse::<u32>().ok()));
        let input = input.and_then(|input| fs::metadata(input).ok());
        users.extend(input.as_ref().map(std::os::unix::fs::MetadataExt::uid));
        let until = input.and_then(|input| input.modified().ok()?.checked_add(ROUNDED));
        Self { folders: folders.to_owned(), users, noted: noted.clone(), is_here, until }
    }

    /// Checks whether a file that was found for process `pid` is trusted. A file that the process has mapped, given as `mapped`,
    /// belongs to the process. In folders where not every user can create files, the owner is not checked.
    ///
    /// Returns the owner that the file must still have when it is opened; `None` for any.
    ///
    /// # Errors
    /// If the file is not trusted.
    pub fn owner(
        &self,
        path: &Path,
        pid: u32,
        mapped: Option<Inode>,
    ) -> Result<Option<u32>, Untrusted> {
        if self.folders.iter().any(|folder| path.starts_with(folder)) {
            return Ok(None);
        }
        // A file whose facts cannot be read cannot be opened either.
        let Ok(facts) = facts(path) else { return Ok(None) };
        if !facts.is_open_to_all {
            return Ok(None);
        }
        let user = facts.user;
        let is_mapped = mapped.is_some_and(|mapped| mapped == facts.inode);
        if is_mapped || self.users.contains(&user) || self.user_of_process(pid) == Some(user) {
            return Ok(Some(user));
        }
        Err(Untrusted { user })
    }

    /// The user that a process runs as, or ran as when it was recorded.
    fn user_of_process(&self, pid: u32) -> Option<u32> {
        if let Some(user) = self.noted.get(&pid) {
            return Some(*user);
        }
        let process = foreign::Target::open(pid).ok().filter(|_| self.is_here)?;
        let began = process::began(pid)?;
        let is_it = self.until.is_none_or(|until| began <= until);
        process.effective().ok().filter(|_| is_it).map(|owner| owner.user)
    }
}

/// Files are looked at and opened by workers: see [`crate::foreign`].
impl SourceFiles for Believed {
    fn open(&self, path: &Path, owner: Option<u32>) -> io::Result<SourceFile> {
        Ok(open_owned_by(owner, path)?.into())
    }

    fn open_source(&self, path: &Path, user: Option<u32>) -> io::Result<SourceFile> {
        Ok(open_source(path, user)?.into())
    }

    fn user_of(&self, pid: u32, dump: &Path) -> Option<u32> {
        // A recording in one command knows all processes, and its copies of their logs are its own.
        let owner = || facts(dump).ok().filter(|_| self.noted.is_empty()).map(|file| file.user);
        self.user_of_process(pid).or_else(owner)
    }

    fn jitdump_pid(&self, path: &Path) -> Option<u32> {
        jitdump_pid(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        is_file(path)
    }

    fn same_file(&self, a: &Path, b: &Path) -> bool {
        same_file(a, b)
    }

    fn trust(
        &self,
        path: &Path,
        pid: u32,
        mapped: Option<Inode>,
    ) -> Result<Option<u32>, Untrusted> {
        self.owner(path, pid, mapped)
    }
}
