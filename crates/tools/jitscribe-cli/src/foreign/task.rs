//! The tasks of workers, and their output.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;
use serde::{Deserialize, Serialize};

use super::wire;
use crate::files;
use crate::process;
use crate::record;

/// A task of a worker. Besides the descriptors that are passed to it, this is all that the worker knows: it has no environment,
/// and its working directory is `/`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Finds the code logs of a process.
    Logs(process::FindLogs),
    /// Converts a code log to a jitdump.
    Read(process::ReadLog),
    /// Writes the control word of a code log.
    Request(process::RequestLog),
    /// Creates a file where a process sees it.
    Write(process::WriteInside),
    /// Opens regular files, one after the other: see [`files::open_all`].
    Files,
    /// Reads the list of mappings of a process, as the kernel gives it.
    Mappings {
        /// The process.
        pid: u32,
    },
    /// Lists the files that a process writes, as JSON: [`process::WrittenFile`].
    Written {
        /// The process.
        pid: u32,
    },
    /// Reads the executable memory of a process, once for each request.
    Executable(process::ReadExecutable),
    /// Searches files that a process has mapped for heads of GDB's JIT lists or for compilers.
    SearchFiles(process::SearchFiles),
    /// Reads the code that a process has registered with GDB's JIT interface, and what else is found in its memory, once for each request.
    Registered(process::ReadRegistered),
    /// Lists the files that a process has mapped to run their code, once for each request.
    ListCode(process::ListCode),
    /// Opens files that a process has mapped, and that are gone from their paths or may be soon.
    HoldFiles(process::HoldFiles),
    /// Reads the perf map and the jitdumps of a process.
    SourceFiles(process::ReadSourceFiles),
    /// Sends a request to a process if it is a JVM: see [`record::JvmTask`].
    Jvm(record::JvmTask),
    /// Has the runtime of a process announce its code: see [`record::InspectTask`].
    Inspect(record::InspectTask),
    /// Follows processes: see [`record::FollowTask`].
    Follow(record::FollowTask),
    /// Never answers.
    #[cfg(test)]
    Sleep,
    /// Answers, continues to run, and never ends.
    #[cfg(test)]
    Keep,
    /// Never answers, and uses a processor.
    #[cfg(test)]
    Spin,
    /// Never answers, as a signal stops it.
    #[cfg(test)]
    Stop,
    /// Answers after it has waited on a busy processor, with this number.
    #[cfg(test)]
    Starve(usize),
    /// Takes on the owner's privileges, and reports its user and what it can still do.
    #[cfg(test)]
    WhoAmI(super::Owner),
}

impl Task {
    /// Whether it reads a whole log, which may take much memory in the command and in the worker.
    pub fn is_reader(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// Performs the task.
    pub fn perform(self, passed: Vec<OwnedFd>, output: &mut Output) -> io::Result<()> {
        match self {
            Self::Logs(task) => task.perform(output),
            Self::Read(task) => task.perform(passed, output),
            Self::Request(task) => task.perform(passed, output),
            Self::Write(task) => task.perform(passed, output),
            Self::Files => files::open_all(output),
            Self::Mappings { pid } => output.bytes(&process::mappings_text(pid)?),
            Self::Written { pid } => {
                let files = process::written_files(&super::Target::open(pid)?)?;
                output.bytes(&serde_json::to_vec(&files)?)
            }
            Self::Executable(task) => task.perform(output),
            Self::SearchFiles(task) => task.perform(output),
            Self::Registered(task) => task.perform(output),
            Self::ListCode(task) => task.perform(output),
            Self::HoldFiles(task) => task.perform(output),
            Self::SourceFiles(task) => task.perform(output),
            Self::Jvm(task) => task.perform(output),
            Self::Inspect(task) => task.perform(output),
            Self::Follow(task) => task.perform(output),
            #[cfg(test)]
            Self::Sleep => super::tests::sleep(),
            #[cfg(test)]
            Self::Keep => {
                output.keep()?;
                super::tests::sleep()
            }
            #[cfg(test)]
            Self::Spin => super::tests::spin(),
            #[cfg(test)]
            Self::Stop => super::tests::stop(),
            #[cfg(test)]
            Self::Starve(cpu) => super::tests::starve(cpu, output),
            #[cfg(test)]
            Self::WhoAmI(owner) => super::tests::who_am_i(owner, output),
        }
    }
}

/// The kind of a packet, in its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Part of the answer, possibly with descriptors.
    Bytes = 1,
    /// The worker is making progress.
    Progress,
    /// The answer is complete.
    Done,
    /// There is no answer: the number of a system error, or 0, and a text.
    Failed,
    /// The answer is complete, and the worker continues to run until the command stops it.
    Kept,
    /// The helper has started the worker: its process id.
    Started,
}

impl Kind {
    pub fn of(byte: u8) -> Option<Self> {
        use Kind::{Bytes, Done, Failed, Kept, Progress, Started};
        [Bytes, Progress, Done, Failed, Kept, Started].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Reports the progress of a worker from time to time.
#[derive(Debug)]
pub struct Progress<'o> {
    output: RefCell<&'o mut Output>,
    last: Cell<Instant>,
}

/// The minimum interval between reports.
const OFTEN: Duration = Duration::from_millis(50);

impl<'o> Progress<'o> {
    pub fn new(output: &'o mut Output) -> Self {
        Self { output: RefCell::new(output), last: Cell::new(Instant::now()) }
    }

    /// Reports progress. Errors are ignored: if the command has ended, the worker notices that elsewhere.
    pub fn report(&self) {
        let now = Instant::now();
        if now.duration_since(self.last.get()) > OFTEN {
            self.last.set(now);
            let _ = self.output.borrow().progress();
        }
    }
}

/// The output for a worker's answer.
#[derive(Debug)]
pub struct Output(OwnedFd);

/// The descriptor becomes readable when the command sends another request, or no longer waits for the answer.
impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Output {
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends a part of the answer.
    ///
    /// # Errors
    /// If the command no longer waits for it.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(wire::PACKET - 1) {
            self.send(Kind::Bytes, part, &[])?;
        }
        Ok(())
    }

    /// Sends a descriptor.
    ///
    /// # Errors
    /// If the command no longer waits for it.
    pub fn descriptor(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.send(Kind::Bytes, &[], &[descriptor])
    }

    /// Reports progress.
    ///
    /// # Errors
    /// If the command no longer waits for the answer.
    pub fn progress(&self) -> io::Result<()> {
        self.send(Kind::Progress, &[], &[])
    }

    /// Reports the process id of the worker. The helper calls this, which never waits: the worker may have filled the socket.
    ///
    /// # Errors
    /// If the command no longer waits for the answer, or there is no space.
    pub fn started(&self, pid: u32) -> io::Result<()> {
        let packet: [&[u8]; 2] = [&[Kind::Started as u8], &pid.to_ne_bytes()];
        wire::send_at_once(&self.0, &packet)
    }

    /// Ends the answer, but not the task: the command then has a [`super::Kept`] of it.
    ///
    /// # Errors
    /// If the command no longer waits for it.
    pub fn keep(&mut self) -> io::Result<()> {
        self.send(Kind::Kept, &[], &[])
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// If the command no longer waits for it.
    pub fn finish(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Ok(()) => self.send(Kind::Done, &[], &[]),
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(0).to_ne_bytes();
                let text = error.to_string();
                let text = text.as_bytes().get(..1024).unwrap_or(text.as_bytes());
                self.send(Kind::Failed, &[&number, text].concat(), &[])
            }
        }
    }

    /// The next request of the command; `None` if it has ended.
    pub fn next_request<'r>(&mut self, room: &'r mut [u8]) -> Option<&'r [u8]> {
        let (count, _) = wire::receive(&self.0, room, RecvFlags::empty()).ok()?;
        room.get(..count).filter(|request| !request.is_empty())
    }

    /// Waits for the next request of the command, which has no descriptors; `false` if it has ended. A worker that is locked down may
    /// call this: it may read, but not receive descriptors.
    pub fn wait_for_request(&mut self) -> bool {
        let mut room = [0; 64];
        rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut room))
            .is_ok_and(|size| size > 0)
    }

    /// The next request of the command, which has no descriptors; `None` if it has ended. Also for a worker that is locked down.
    pub fn read_request<'r>(&mut self, room: &'r mut [u8]) -> Option<&'r [u8]> {
        let size = rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut *room)).ok()?;
        room.get(..size).filter(|request| !request.is_empty())
    }

    fn send(&self, kind: Kind, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send(self.0.as_fd(), &[&[kind as u8], bytes], descriptors)
    }
}
