//! What keeps the agent at work in one JVM: a named pipe that we have open for writing. The agent lets go when something is
//! written to it, and when nobody has it open any more, however we ended. It lies in the file system that the JVM sees.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tempfile::NamedTempFile;

use super::jcmd::other_owner;
use crate::process::FolderInside;

/// A pipe that an agent may take.
#[derive(Debug)]
pub struct Offer {
    /// Its name goes when this is dropped.
    name: NamedTempFile<()>,
    /// By which the name is reached.
    _folder: FolderInside,
    /// Without a reader it could not be opened for writing.
    _reader: File,
    writer: File,
}

/// A pipe that an agent has taken.
#[derive(Debug)]
pub struct Hold(File);

impl Offer {
    /// Makes one for a JVM.
    pub fn make(pid: u32) -> io::Result<Self> {
        let folder = FolderInside::open(pid, Path::new("/tmp"))?;
        let prefix = format!(".jitscribe-{pid}-");
        let name = tempfile::Builder::new().prefix(&prefix).make_in(folder.path(), |path| {
            Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
        })?;
        // What stands there now may be another's: the pipe alone is opened, once, and what we do with it is not by its name.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let reader = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(name.path())?;
        if !reader.metadata()?.file_type().is_fifo() {
            return Err(io::Error::other("/tmp there is changed by others"));
        }
        let own = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let writer = File::options().write(true).open(own)?;
        if let Some((user, group)) = other_owner(pid)? {
            fchown(&reader, Some(user), Some(group))?;
        }
        Ok(Self { name, _folder: folder, _reader: reader, writer })
    }

    /// The pipe as the JVM sees it.
    pub fn path(&self) -> String {
        let name = self.name.path().file_name().unwrap_or_default();
        format!("/tmp/{}", name.to_string_lossy())
    }

    /// The agent has it open.
    pub fn taken(self) -> Hold {
        Hold(self.writer)
    }
}

impl Hold {
    /// Tells the agent to let go.
    pub fn let_go(&mut self) {
        // It may have ended.
        let _ = self.0.write_all(b".");
    }

    /// Waits until the agent has let go, or it is too late to wait.
    pub fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        // With nobody left who reads, the pipe has an error, which needs not be asked for.
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::empty())], Some(&left));
    }
}
