//! The object files on disk.

use std::ffi::CStr;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::Path;

use fallible::{PathText, Text};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::{Errno, writev};
use rustix::process::{Resource, getpid, getrlimit};

use crate::error::Cause;
use crate::options::Options;

/// Number of names that are tried for a file until one is free.
const TRIES: u32 = 1000;

/// The content of a file: its pieces, and their size in all.
pub(crate) type Content<'a, 'b> = (&'a mut [IoSlice<'b>], u64);

/// A file that this process created.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    /// For system calls, like the next one.
    path: PathText,
    /// The path at which another version is written.
    beside: PathText,
    /// Device and inode.
    identity: (u64, u64),
}

/// The directory of the files, and the prefix of their names.
#[derive(Debug)]
pub(crate) struct Folder {
    path: Option<PathText>,
    pid: i32,
}

impl Folder {
    pub(crate) fn new(options: &Options) -> Self {
        // A relative path must stay valid after a `chdir`.
        let path = options.directory.as_ref().and_then(PathText::absolute);
        Self { path, pid: getpid().as_raw_nonzero().get() }
    }

    /// The child of a fork has files of its own.
    pub(crate) fn path(&self) -> &Path {
        self.path.as_ref().map_or(Path::new(""), PathText::as_path)
    }

    pub(crate) fn forked(&mut self) {
        self.pid = getpid().as_raw_nonzero().get();
    }

    /// Creates a file for the region that begins at `address`.
    pub(crate) fn create(
        &self,
        address: u64,
        content: Content<'_, '_>,
    ) -> Result<(ObjectFile, OwnedFd), Cause> {
        let pid = self.pid;
        let beside = self.place(|| fallible::text!(".jit-{pid}.new"))?;
        let mut path = self.place(|| fallible::text!("jit-{pid}-{address:x}.so"))?;
        for number in 2..TRIES {
            match create(path.as_c_str()) {
                Ok(fd) => {
                    let identity = write(&fd, content).and_then(|()| identity_of(&fd));
                    if identity.is_err() {
                        let _ = unlinkat(CWD, path.as_c_str(), AtFlags::empty());
                    }
                    return Ok((ObjectFile { path, beside, identity: identity? }, fd));
                }
                // It belongs to an earlier process with the same pid, or to what was at this
                // address before.
                Err(Errno::EXIST) => {
                    path = self.place(|| fallible::text!("jit-{pid}-{address:x}-{number}.so"))?;
                }
                Err(errno) => return Err(Cause::system("create the object file")(errno)),
            }
        }
        Err(Cause::system("create the object file")(Errno::EXIST))
    }

    /// The path of a file in the directory.
    fn place(&self, name: impl FnOnce() -> Text) -> Result<PathText, Cause> {
        let name = fallible::attempt(name).map_err(|_| Cause::Memory)?;
        self.path.as_ref().and_then(|path| path.join(&*name)).ok_or(Cause::Memory)
    }
}

impl ObjectFile {
    pub(crate) fn path(&self) -> &Path {
        self.path.as_path()
    }

    /// Replaces the file by another version. `None` if the file does not exist any more.
    ///
    /// Valgrind may read the old version at any time, so the file is never visible half written.
    /// The old version is deleted before the new one gets its name: when renaming over a file, some
    /// file systems write everything to the disk at once.
    pub(crate) fn replace(&mut self, content: Content<'_, '_>) -> Result<Option<OwnedFd>, Cause> {
        let (path, beside) = (self.path.as_c_str(), self.beside.as_c_str());
        let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity(&stat));
        if found != Ok(self.identity) {
            return Ok(None);
        }
        let fd = create(beside)
            .or_else(|_| {
                // A process with the same pid was interrupted at this point.
                unlinkat(CWD, beside, AtFlags::empty())?;
                create(beside)
            })
            .map_err(Cause::system("create the object file"))?;
        let replaced = write(&fd, content).and_then(|()| {
            self.identity = identity_of(&fd)?;
            unlinkat(CWD, path, AtFlags::empty())
                .and_then(|()| renameat(CWD, beside, CWD, path))
                .map_err(Cause::system("replace the object file"))
        });
        if replaced.is_err() {
            let _ = unlinkat(CWD, beside, AtFlags::empty());
        }
        replaced.map(|()| Some(fd))
    }

    /// Deletes it.
    pub(crate) fn remove(&self) {
        let _ = unlinkat(CWD, self.path.as_c_str(), AtFlags::empty());
    }
}

fn create(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)
}

fn identity_of(fd: &OwnedFd) -> Result<(u64, u64), Cause> {
    fstat(fd).map(|stat| identity(&stat)).map_err(Cause::system("examine the object file"))
}

#[allow(clippy::useless_conversion)] // The fields' types differ between machines.
fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev.into(), stat.st_ino.into())
}

fn write(fd: &OwnedFd, (mut pieces, size): Content<'_, '_>) -> Result<(), Cause> {
    let limit = getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < size) {
        return Err(Cause::SizeLimit);
    }
    let mut left = usize::try_from(size).unwrap_or(usize::MAX);
    loop {
        match writev(fd, pieces) {
            Err(Errno::INTR) => {}
            // File systems that cannot write more sometimes return 0 instead of an error.
            Ok(0) => return Err(Cause::system("write the object file")(Errno::NOSPC)),
            Ok(written) if written == left => return Ok(()),
            Ok(written) => {
                left = left.saturating_sub(written);
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(errno) => return Err(Cause::system("write the object file")(errno)),
        }
    }
}
