//! The named pipe that keeps an agent active in a process, and that we hold open for writing. The agent stops when something is
//! written to the pipe, or when no process has it open for writing any more, however we ended. The pipe is in the file system
//! that the process sees.
//!
//! The pipe never leaves the worker. The worker creates it as the process's user, so it opens nothing that this user could not open.
//! A hostile process that also has the pipe open can fill it, keep it open, and hold the kernel's lock of it, so that a process
//! that writes to the pipe or closes it cannot even be killed. Therefore the command has one worker per pipe
//! ([`crate::foreign::Kept`]), tells it to let go, and waits for it until a deadline. However the command ends, the worker ends
//! as well, and with it the pipe.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat, openat};

use super::failure::Failure;
use super::folder::{Folder, Name};
use super::target::Target;
use super::wait::Wait;
use crate::foreign::{self, Kept, Limit, Output, Patience};

/// The message from the command to the worker to stop the agent.
const LET_GO: &[u8] = b".";

/// The time for an agent to stop at the end of the recording.
const GOODBYE: Limit = Limit::of(Duration::from_secs(5));

/// The additional time for a worker to report that it has ended, and that may get no processor time at the end.
const LATE_WORD: Duration = Duration::from_secs(30);

/// Has the agents stop that these workers keep active, and waits for them.
pub fn let_go<'k>(workers: impl Iterator<Item = &'k Kept> + Clone) {
    // Errors are ignored: an agent that does not get the message stops when we have ended.
    workers.clone().for_each(|kept| drop(kept.send(LET_GO)));
    // A worker ends when the time for its agent is over, and says that it counts until then. It is given up if it says nothing.
    let whole = Limit { counted: GOODBYE.wall, ..GOODBYE }.and(LATE_WORD);
    let patience = Patience { silence: GOODBYE, whole, ..Patience::NAMED };
    foreign::wait_for_ends(workers, patience);
}

/// A pipe that no agent has opened yet.
#[derive(Debug)]
pub struct OfferedPipe<'f> {
    name: Name<'f>,
    /// Without a reader, the pipe could not be opened for writing.
    _reader: OwnedFd,
    writer: OwnedFd,
}

/// The non-blocking writing end of a pipe that an agent has opened.
#[derive(Debug)]
pub struct SessionPipe(File);

impl<'f> OfferedPipe<'f> {
    /// Creates a pipe in a process's `/tmp`.
    pub fn make(folder: &'f Folder, pid: u32) -> io::Result<Self> {
        let name = format!(".jitscribe-{pid}-{:016x}", RandomState::new().hash_one(pid));
        // Fails if the name exists.
        let name = folder.make(name, |folder, name| {
            mknodat(folder, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        })?;
        // Another process may have replaced the file: it is opened once by name, checked, and from then on used by descriptor.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let reader = openat(folder, name.as_str(), flags, Mode::empty())?;
        expect_pipe(&reader)?;
        let own = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let writer = openat(CWD, own, flags, Mode::empty())?;
        Ok(Self { name, _reader: reader, writer })
    }

    /// Its name in the process's `/tmp`.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The path of the pipe as the process sees it.
    pub fn path(&self) -> String {
        format!("/tmp/{}", self.name.as_str())
    }

    /// To be called when the agent has opened the pipe. Removes its name.
    pub fn taken(self) -> SessionPipe {
        SessionPipe(self.writer.into())
    }
}

impl SessionPipe {
    /// Keeps the agent active until the command sends [`LET_GO`], and returns when the agent has closed the pipe or has not done so in
    /// [`GOODBYE`]. If the command has ended, this process will end as well, and with it the pipe. `target` is the process, if it is known.
    ///
    /// # Errors
    /// If the command has ended.
    pub fn keep(mut self, output: &mut Output, target: Option<&Target>) -> io::Result<()> {
        output.keep()?;
        if output.next_request(&mut [0; LET_GO.len()]).is_none() {
            return Ok(());
        }
        // This fails if the process has ended, or if a hostile process has filled the pipe.
        let _ = self.0.write_all(b".");
        // When the last reader closes the pipe, `poll` reports an error, which is always enabled.
        match Wait::new(GOODBYE, target, Some(output)).ready(&self.0, PollFlags::empty()) {
            Ok(()) | Err(Failure::Stopped | Failure::NotAnswering) => Ok(()),
            Err(failure) => Err(io::Error::other(failure.to_string())),
        }
    }
}

fn expect_pipe(file: &OwnedFd) -> io::Result<()> {
    if FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Fifo {
        Ok(())
    } else {
        Err(io::Error::other("another process is changing its /tmp"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn taken(folder: &Folder) -> (SessionPipe, File) {
        let offer = OfferedPipe::make(folder, 1).expect("an offer");
        let path = format!("/proc/self/fd/{}/{}", folder.as_fd().as_raw_fd(), offer.name.as_str());
        let theirs = File::options().read(true).open(path).expect("it is there");
        (offer.taken(), theirs)
    }

    /// Has a thread keep it, and returns the command's end once it does.
    fn kept(session: SessionPipe) -> (UnixStream, thread::JoinHandle<io::Result<()>>) {
        let (mut command, worker) = UnixStream::pair().expect("a pair");
        let worker = thread::spawn(move || session.keep(&mut Output::new(worker.into()), None));
        command.read_exact(&mut [0]).expect("it is kept");
        (command, worker)
    }

    #[test]
    fn a_pipe_has_a_name_until_it_is_taken_and_ends_with_its_reader() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(File::open(dir.path()).expect("opened").into());
        let (session, mut theirs) = taken(&folder);
        assert_eq!(dir.path().read_dir().expect("a folder").count(), 0, "its name is left");
        let (mut command, worker) = kept(session);
        command.write_all(LET_GO).expect("told");
        theirs.read_exact(&mut [0]).expect("written");
        thread::sleep(Duration::from_millis(100));
        assert!(!worker.is_finished(), "it is still open");
        drop(theirs);
        worker.join().expect("ended").expect("let go");
    }

    #[test]
    fn a_pipe_is_closed_when_the_command_is_gone() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(File::open(dir.path()).expect("opened").into());
        for told in [false, true] {
            let (session, mut theirs) = taken(&folder);
            let (mut command, worker) = kept(session);
            if told {
                command.write_all(LET_GO).expect("told");
            }
            drop(command);
            worker.join().expect("ended").expect("closed");
            let mut written = Vec::new();
            theirs.read_to_end(&mut written).expect("closed");
            assert_eq!(written.len(), usize::from(told));
        }
    }

    #[test]
    fn a_full_pipe_causes_no_wait() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(File::open(dir.path()).expect("opened").into());
        let (mut session, theirs) = taken(&folder);
        while session.0.write(&[0; 4096]).is_ok() {}
        while session.0.write(&[0]).is_ok() {}
        let (mut command, worker) = kept(session);
        command.write_all(LET_GO).expect("told");
        drop(theirs);
        worker.join().expect("ended").expect("let go");
    }
}
