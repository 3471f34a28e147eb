//! How files are opened, and which of the files that are found are trusted.

use std::any::Any;
use std::fmt::Debug;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use jitdump::ReadAt;
use rustix::fs::{OFlags, major, minor};
use rustix::process::geteuid;

use super::name::pid_of_log;

/// Identifies a file for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// The major and minor number of the device.
    pub device: (u32, u32),
    /// The inode number.
    pub number: u64,
}

impl Inode {
    /// The inode with this number on this device, as `stat` tells it.
    #[must_use]
    pub fn new(device: u64, number: u64) -> Self {
        Self { device: (major(device), minor(device)), number }
    }
}

/// A regular file, opened for reading, and data that is kept while it is open.
#[derive(Debug)]
pub struct SourceFile {
    file: File,
    owner: Option<u32>,
    _kept: Option<Box<dyn Any + Send + Sync>>,
}

impl SourceFile {
    /// A file without data.
    #[must_use]
    pub fn new(file: File) -> Self {
        let owner = file.metadata().ok().map(|file| file.uid());
        Self { file, owner, _kept: None }
    }

    /// A file of this user, or a copy of it, with data that is dropped with it; for example, a reservation of memory for a copy.
    pub fn with(file: File, owner: u32, kept: impl Any + Send + Sync) -> Self {
        Self { file, owner: Some(owner), _kept: Some(Box::new(kept)) }
    }

    /// The user to whom the file belongs; of a copy, the file that was copied.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }
}

impl Deref for SourceFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl ReadAt for SourceFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        ReadAt::read_at(&self.file, buffer, offset)
    }
}

/// The file belongs to a user who is not related to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The file's owner.
    pub user: u32,
}

/// How to open files that a recording, a process or a user names.
///
/// [`PlainFiles`] opens them directly. A program with privileges that others do not have should be more careful with
/// the paths that they name: a path may lead to a file system that never answers.
pub trait SourceFiles: Debug + Sync {
    /// Opens a regular file for reading. If an `owner` is given, the file must belong to this user: it may have been
    /// replaced since it was found.
    ///
    /// # Errors
    /// The system's error; an error if it is not a regular file, or belongs to another user.
    fn open(&self, path: &Path, owner: Option<u32>) -> io::Result<SourceFile>;

    /// The process id in a jitdump's header, or in the name of a [log](code_index::LOG_FORMATS) that is opened as one; `None` if
    /// the file is neither.
    fn jitdump_pid(&self, path: &Path) -> Option<u32> {
        pid_of_jitdump(path, &*self.open(path, None).ok()?)
    }

    /// Whether there is a regular file at this path.
    fn is_file(&self, path: &Path) -> bool;

    /// Whether two paths refer to the same file.
    fn same_file(&self, a: &Path, b: &Path) -> bool;

    /// Opens a file that code of this user names as its source: only if that user may read it; without a user, only if every
    /// user may. A process can name any file, and what is shown of it may be passed on.
    ///
    /// # Errors
    /// As for [`open`](Self::open); [`io::ErrorKind::PermissionDenied`] if the user may not read it.
    fn open_source(&self, path: &Path, user: Option<u32>) -> io::Result<SourceFile> {
        let file = self.open(path, None)?;
        if !may_read_what_we_may(user) {
            check_readable_by_all(path, &inode(&file.metadata()?))?;
        }
        Ok(file)
    }

    /// The user of process `pid`, whose code is described by `dump`, a file that was found for it.
    fn user_of(&self, pid: u32, dump: &Path) -> Option<u32> {
        let _ = pid;
        fs::metadata(dump).ok().map(|file| file.uid())
    }

    /// Whether to use a file that was found for process `pid`, and that no user named. `mapped` is the file that the
    /// process has mapped by this name, if the recording has it.
    ///
    /// Returns the owner that it must still have when it is [opened](Self::open); `None` for any.
    ///
    /// # Errors
    /// If it must not be used.
    fn trust(&self, path: &Path, pid: u32, mapped: Option<Inode>)
    -> Result<Option<u32>, Untrusted>;
}

/// Whether this user may read all that this process may read.
#[must_use]
pub fn may_read_what_we_may(user: Option<u32>) -> bool {
    user == Some(0) || user == Some(geteuid().as_raw())
}

/// Checks, without becoming another user, that every user may read a file that was opened by this path: others are denied
/// neither by the file nor by a folder.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if they are; the system's error if it cannot be found out.
pub fn check_readable_by_all(path: &Path, opened: &Inode) -> io::Result<()> {
    // The system's own error: only its number passes from a worker to the command.
    let denied = || Err(rustix::io::Errno::ACCESS.into());
    // It has no links, so that all folders are in it.
    let path = fs::canonicalize(path)?;
    let found = fs::symlink_metadata(&path)?;
    // The path may lead elsewhere since.
    if inode(&found) != *opened || found.mode() & 0o4 == 0 {
        return denied();
    }
    for folder in path.ancestors().skip(1) {
        if fs::symlink_metadata(folder)?.mode() & 0o1 == 0 {
            return denied();
        }
    }
    Ok(())
}

/// See [`SourceFiles::jitdump_pid`].
fn pid_of_jitdump(path: &Path, file: &impl ReadAt) -> Option<u32> {
    let mut header = [0; jitdump::HEADER_SIZE as usize];
    let count = file.read_at(&mut header, 0).ok()?;
    pid_in_header(path, header.get(..count)?)
}

/// The process id in the header of a jitdump, or in the name of a [log](code_index::LOG_FORMATS) that is opened as one.
/// `header`: as many bytes of the file as the header has. `None` if the file is neither.
#[must_use]
pub fn pid_in_header(path: &Path, header: &[u8]) -> Option<u32> {
    let dump = jitdump::Dump::parse(header).ok();
    dump.map(|dump| dump.header().pid).or_else(|| pid_of_log(path, header))
}

/// Opens files directly.
///
/// It trusts files of root and of the user who runs this, and files that the process has mapped. Others may be forged:
/// any user can create `/tmp/perf-PID.map`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainFiles;

impl SourceFiles for PlainFiles {
    fn open(&self, path: &Path, owner: Option<u32>) -> io::Result<SourceFile> {
        let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        // Opening a device may have side effects.
        if !fs::metadata(path)?.is_file() {
            return Err(not_regular());
        }
        // If it has become a FIFO since, the call must not wait for a writer.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_regular());
        }
        if owner.is_some_and(|owner| owner != metadata.uid()) {
            return Err(io::Error::other("replaced by another user's while it was looked for"));
        }
        Ok(SourceFile::new(file))
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn same_file(&self, a: &Path, b: &Path) -> bool {
        let inode = |path: &Path| fs::metadata(path).ok().map(|file| inode(&file));
        matches!((inode(a), inode(b)), (Some(a), Some(b)) if a == b)
    }

    fn trust(
        &self,
        path: &Path,
        _pid: u32,
        mapped: Option<Inode>,
    ) -> Result<Option<u32>, Untrusted> {
        // If its metadata cannot be read, it cannot be opened, either.
        let Ok(file) = fs::metadata(path) else { return Ok(None) };
        let user = file.uid();
        if user == 0 || user == geteuid().as_raw() || mapped == Some(inode(&file)) {
            return Ok(Some(user));
        }
        Err(Untrusted { user })
    }
}

fn inode(file: &Metadata) -> Inode {
    Inode::new(file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("jit-1.dump");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [fifo.as_path(), folder.path(), Path::new("/dev/zero")] {
            let error = PlainFiles.open(path, None).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
            assert!(!PlainFiles.is_file(path));
            assert_eq!(PlainFiles.jitdump_pid(path), None);
        }
        let error = PlainFiles.open(&folder.path().join("none"), None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_must_belong_to_the_owner_that_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let mut text = String::new();
        let mut opened = PlainFiles.open(&link, Some(metadata.uid())).unwrap();
        opened.file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(PlainFiles.open(&path, Some(metadata.uid() + 1)).is_err());
        assert!(PlainFiles.same_file(&path, &link));
        assert_eq!(PlainFiles.trust(&path, 1, None), Ok(Some(metadata.uid())));
        assert_eq!(PlainFiles.trust(&folder.path().join("none"), 1, None), Ok(None));
    }

    #[test]
    fn a_file_of_another_user_is_trusted_only_if_the_process_has_mapped_it() {
        if !test_privilege::have(&[test_privilege::Privilege::OtherUsers]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "text").unwrap();
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        let mapped = inode(&fs::metadata(&path).unwrap());
        let other = Inode { number: mapped.number + 1, ..mapped };
        assert_eq!(PlainFiles.trust(&path, 1, None), Err(Untrusted { user: 12345 }));
        assert_eq!(PlainFiles.trust(&path, 1, Some(other)), Err(Untrusted { user: 12345 }));
        assert_eq!(PlainFiles.trust(&path, 1, Some(mapped)), Ok(Some(12345)));
    }
}
