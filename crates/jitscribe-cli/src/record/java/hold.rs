//! What keeps the agent at work in one JVM: a named pipe that we have open for writing. The agent lets go when something is
//! written to it, and when nobody has it open any more, however we ended. It lies in the file system that the JVM sees.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tempfile::NamedTempFile;

use super::jcmd::other_owner;

/// A pipe that an agent may take.
#[derive(Debug)]
pub struct Offer {
    /// Its name goes when this is dropped.
    name: NamedTempFile<()>,
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
        let folder = format!("/proc/{pid}/root/tmp");
        let prefix = format!(".jitscribe-{pid}-");
        let name = tempfile::Builder::new().prefix(&prefix).make_in(folder, |path| {
            Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
        })?;
        let reader = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(name.path())?;
        let writer = File::options().write(true).open(name.path())?;
        if let Some((user, group)) = other_owner(pid)? {
            chown(name.path(), Some(user), Some(group))?;
        }
        Ok(Self { name, _reader: reader, writer })
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
