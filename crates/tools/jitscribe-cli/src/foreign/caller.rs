//! The command's side: starts tasks, and waits for their answers with a deadline.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;

use super::budget::{Budget, Reservation};
use super::helper::Message;
use super::task::{Kind, Task};
use super::wire;
use crate::{note, text};

/// A task and its descriptors.
#[derive(Debug)]
pub struct Job {
    /// The task.
    pub task: Task,
    /// The descriptors that are passed to it.
    pub passed: Vec<OwnedFd>,
}

/// The answer of a worker: untrusted bytes, and descriptors.
#[derive(Debug, Default)]
pub struct Answer {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its descriptors.
    pub descriptors: Vec<OwnedFd>,
    /// The worker, if it continues to run.
    pub kept: Option<Kept>,
    /// Accounts for its bytes for as long as they are kept.
    pub held: Reservation,
}

/// A worker that has answered and continues to run until it gets a message. Dropping this stops it.
#[derive(Debug)]
pub struct Kept {
    socket: OwnedFd,
    number: u64,
}

impl Kept {
    /// Sends it a message. There is always space for the first one.
    ///
    /// # Errors
    /// If it has ended, or does not accept the message in time.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        wire::send(&self.socket, &[message], &[])
    }

    /// Sends it a request, and waits for the answer. A worker that does not answer in time is stopped.
    ///
    /// # Errors
    /// As for [`run`].
    pub fn ask(&self, request: &[u8], patience: Patience) -> io::Result<Answer> {
        let now = Instant::now();
        let mut running = Running {
            index: 0,
            number: self.number,
            socket: self.socket.try_clone()?,
            begun: now,
            until: now + patience.silence,
            answer: Answer::default(),
            is_reader: false,
            is_over: false,
        };
        wire::send(&running.socket, &[request], &[])?;
        running.wait_for_answer(&mut vec![0; wire::PACKET], patience)
    }

    /// Waits until the worker has sent something or ended, but not longer than `until`.
    pub fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&left));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        stop(self.number);
    }
}

/// The limit for all answers held by this command.
static ANSWERS: Budget = Budget::new(3 << 30);

/// An empty reservation of [`ANSWERS`].
impl Default for Reservation {
    fn default() -> Self {
        Self::of(&ANSWERS)
    }
}

/// How long to wait for an answer, and how large it may be.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The longest wait without any message from the worker.
    pub silence: Duration,
    /// The longest wait in total.
    pub whole: Duration,
    /// The maximum size of the answer in bytes.
    pub bytes: usize,
    /// The limit on the worker's address space.
    pub memory: u64,
    /// For all tasks of one [`run_all`] together: no task is started after this time.
    pub all: Duration,
}

impl Patience {
    /// For a process that the user named.
    pub const NAMED: Self = Self {
        silence: Duration::from_secs(10),
        whole: Duration::from_secs(120),
        bytes: 2 << 30,
        memory: 6 << 30,
        all: Duration::MAX,
    };
    /// For one of many processes that the user did not name.
    pub const ONE_OF_MANY: Self = Self {
        silence: Duration::from_secs(5),
        whole: Duration::from_secs(30),
        bytes: 1 << 30,
        memory: 2 << 30,
        all: Duration::from_secs(60),
    };
}

/// The maximum number of workers at a time.
const WORKERS: usize = 64;
/// The maximum number of workers that are not late yet. When a worker becomes late, another may start, so that workers that
/// never answer do not block others.
const PROMPT: usize = 4;
/// The maximum number of workers that read logs, late or not, because reading logs takes memory.
const READERS: usize = 4;
/// The time after which a worker is late.
const LATE: Duration = Duration::from_millis(100);
/// The maximum number of descriptors in an answer.
const DESCRIPTORS: usize = 256;
/// How long to wait for space to send a message to the helper or a worker. Longer waits mean that a signal has stopped it.
const ROOM: Duration = Duration::from_secs(5);

/// Runs a task in a worker.
///
/// # Errors
/// The worker's error; [`io::ErrorKind::TimedOut`] if it does not answer, [`io::ErrorKind::UnexpectedEof`] if it ended without an
/// answer.
pub fn run(task: Task, passed: Vec<OwnedFd>, patience: Patience) -> io::Result<Answer> {
    let mut answer = Err(io::ErrorKind::UnexpectedEof.into());
    let job = Job { task, passed };
    run_all(std::iter::once(job), patience, |_, done| answer = done);
    answer
}

/// Runs tasks in workers, several at a time. `done` gets the index and the answer of each task, in the order in which the answers
/// arrive.
pub fn run_all(
    jobs: impl IntoIterator<Item = Job>,
    patience: Patience,
    mut done: impl FnMut(usize, io::Result<Answer>),
) {
    let mut jobs = jobs.into_iter().enumerate().peekable();
    let mut running: VecDeque<Running> = VecDeque::new();
    let mut room = vec![0; wire::PACKET];
    let begun = Instant::now();
    while jobs.peek().is_some() || !running.is_empty() {
        let now = Instant::now();
        if now.duration_since(begun) > patience.all && jobs.peek().is_some() {
            let mut count = 0_u64;
            for (index, _) in jobs.by_ref() {
                done(index, Err(io::ErrorKind::QuotaExceeded.into()));
                count += 1;
            }
            note::warning(format_args!(
                "skipped {count} code logs or processes: inspecting others took longer than {} s",
                patience.all.as_secs()
            ));
            continue;
        }
        let prompt = running.iter().filter(|one| now < one.begun + LATE).count();
        let readers = running.iter().filter(|one| one.is_reader).count();
        let is_next_reader = jobs.peek().is_some_and(|(_, job)| job.task.is_reader());
        if prompt < PROMPT
            && running.len() < WORKERS
            && !(is_next_reader && readers >= READERS)
            && let Some((index, job)) = jobs.next()
        {
            match Running::begin(index, &job, patience, now) {
                Ok(one) => running.push_back(one),
                Err(error) => done(index, Err(error)),
            }
            continue;
        }
        let next =
            running.iter().flat_map(|one| [Some(one.until), one.turns_late(now)]).flatten().min();
        if wait(running.iter(), next.unwrap_or(now).saturating_duration_since(now)) {
            // A signal arrived that does not end the command, as at the end of a recording. Whoever sent it does not want to
            // wait.
            let rest = running.iter().map(|one| one.index).chain(jobs.map(|(index, _)| index));
            rest.for_each(|index| done(index, Err(io::ErrorKind::Interrupted.into())));
            return;
        }
        let mut at = 0;
        while let Some(one) = running.get_mut(at) {
            match one.go_on(&mut room, patience) {
                Some(answer) => {
                    if let Some(one) = running.remove(at) {
                        done(one.index, answer.flatten());
                    }
                }
                None => at += 1,
            }
        }
    }
}

/// Waits until one of the workers sends something, at most for `time`. Returns whether a signal arrived.
fn wait<'r>(running: impl IntoIterator<Item = &'r Running>, time: Duration) -> bool {
    let running = running.into_iter();
    let mut polled: Vec<_> = running.map(|one| PollFd::new(&one.socket, PollFlags::IN)).collect();
    let time = Timespec::try_from(time.max(Duration::from_millis(1))).unwrap_or_default();
    // Other errors will show up again in the next read.
    poll(&mut polled, Some(&time)) == Err(rustix::io::Errno::INTR)
}

/// A running task.
#[derive(Debug)]
pub struct Running {
    index: usize,
    number: u64,
    socket: OwnedFd,
    begun: Instant,
    /// The deadline for its next message.
    until: Instant,
    answer: Answer,
    /// Whether it reads a log.
    is_reader: bool,
    /// Whether it has answered.
    is_over: bool,
}

impl Running {
    /// Starts a task.
    pub fn begin(index: usize, job: &Job, patience: Patience, now: Instant) -> io::Result<Self> {
        let (socket, number) = start(&job.task, &job.passed, patience.memory)?;
        Ok(Self {
            index,
            number,
            socket,
            begun: now,
            until: now + patience.silence,
            answer: Answer::default(),
            is_reader: job.task.is_reader(),
            is_over: false,
        })
    }

    /// Where the worker's messages come.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn turns_late(&self, now: Instant) -> Option<Instant> {
        Some(self.begun + LATE).filter(|late| now < *late)
    }

    /// Waits for the answer of this worker alone. `room` is for [`wire::PACKET`] bytes.
    fn wait_for_answer(&mut self, room: &mut [u8], patience: Patience) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.go_on(room, patience) {
                return answer?;
            }
            if wait([&*self], self.until.saturating_duration_since(Instant::now())) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
    }

    /// Reads the worker's messages. Returns its answer once it is complete, or an error if the worker is given up.
    pub fn go_on(
        &mut self,
        room: &mut [u8],
        patience: Patience,
    ) -> Option<io::Result<io::Result<Answer>>> {
        loop {
            let (count, descriptors) = match wire::receive(&self.socket, room, RecvFlags::DONTWAIT)
            {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Some(Err(error)),
                Ok(received) => received,
            };
            self.answer.descriptors.extend(descriptors);
            let packet = room.get(..count).unwrap_or_default();
            let Some((kind, rest)) = packet.split_first() else {
                return Some(Err(io::ErrorKind::UnexpectedEof.into()));
            };
            match Kind::of(*kind) {
                Some(Kind::Bytes) => match self.answer.held.add(rest.len() as u64) {
                    Ok(()) => self.answer.bytes.extend_from_slice(rest),
                    Err(error) => return Some(Err(error)),
                },
                Some(Kind::Progress) => {}
                Some(Kind::Done) => {
                    let answer = std::mem::take(&mut self.answer);
                    self.is_over = true;
                    return Some(Ok(Ok(answer)));
                }
                Some(Kind::Failed) => {
                    // Bytes received so far must not become part of another answer.
                    self.answer = Answer::default();
                    self.is_over = true;
                    return Some(Ok(Err(failure(rest))));
                }
                Some(Kind::Kept) => {
                    let socket = match self.socket.try_clone() {
                        Ok(socket) => socket,
                        Err(error) => return Some(Err(error)),
                    };
                    self.is_over = true;
                    let kept = Some(Kept { socket, number: self.number });
                    return Some(Ok(Ok(Answer { kept, ..std::mem::take(&mut self.answer) })));
                }
                None => return Some(Err(io::ErrorKind::InvalidData.into())),
            }
            let too_much = self.answer.bytes.len() > patience.bytes
                || self.answer.descriptors.len() > DESCRIPTORS;
            if too_much {
                return Some(Err(io::ErrorKind::FileTooLarge.into()));
            }
            let last = self.begun + patience.whole;
            self.until = (Instant::now() + patience.silence).min(last);
            if Instant::now() > last {
                break;
            }
        }
        let is_late = Instant::now() >= self.until;
        is_late.then(|| Err(io::Error::new(io::ErrorKind::TimedOut, "not responding")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            stop(self.number);
        }
    }
}

/// Parses the error of a worker: the number of a system error, and a text.
fn failure(packet: &[u8]) -> io::Error {
    let Some((number, text)) = packet.split_first_chunk() else {
        return io::ErrorKind::InvalidData.into();
    };
    match i32::from_ne_bytes(*number) {
        0 => io::Error::other(String::from_utf8_lossy(text).into_owned()),
        number => io::Error::from_raw_os_error(number),
    }
}

/// The helper, once there is one.
static HELPER: Mutex<Option<Helper>> = Mutex::new(None);

#[derive(Debug)]
struct Helper {
    socket: OwnedFd,
    /// The helper ends when our end of the socket is closed. We never wait for it.
    process: Option<Child>,
}

/// The number of the next task. Numbers are not reused, even with a new helper: otherwise, stopping an old task could stop a new
/// worker.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The worker that opens files, one after the other, once there is one.
static FILES: Mutex<Option<Conversation>> = Mutex::new(None);

/// Sends `request` to the worker that opens files.
///
/// # Errors
/// As for [`run`].
pub fn ask_for_file(request: &[u8], patience: Patience) -> io::Result<Answer> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    for again in [true, false] {
        let one = match &mut *files {
            Some(one) => one,
            none => none.insert(Conversation::begin(Task::Files, patience)?),
        };
        match one.send(request, patience) {
            Ok(()) => {}
            Err(error) if again && is_gone(&error) => {
                *files = None;
                continue;
            }
            Err(error) => return Err(error),
        }
        let answer = one.receive(patience);
        if !one.running.is_over {
            // The worker is late or misbehaves, so it is stopped.
            *files = None;
        }
        return answer;
    }
    Err(io::ErrorKind::BrokenPipe.into())
}

/// A worker that answers requests, one after the other. After an error that is not the worker's own, it must be dropped.
#[derive(Debug)]
pub struct Conversation {
    running: Running,
    /// For a packet. It is kept because clearing it takes longer than most answers.
    room: Vec<u8>,
}

impl Conversation {
    /// Starts a worker for this task.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(task: Task, patience: Patience) -> io::Result<Self> {
        let job = Job { task, passed: Vec::new() };
        let running = Running::begin(0, &job, patience, Instant::now())?;
        Ok(Self { running, room: vec![0; wire::PACKET] })
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// As for [`run`].
    pub fn ask(&mut self, request: &[u8], patience: Patience) -> io::Result<Answer> {
        match self.send(request, patience) {
            // Why it has ended is in its last message.
            Err(error) if !is_gone(&error) => Err(error),
            _ => self.receive(patience),
        }
    }

    fn send(&mut self, request: &[u8], patience: Patience) -> io::Result<()> {
        let (one, now) = (&mut self.running, Instant::now());
        (one.begun, one.until, one.is_over) = (now, now + patience.silence, false);
        wire::send(&one.socket, &[request], &[])
    }

    fn receive(&mut self, patience: Patience) -> io::Result<Answer> {
        self.running.wait_for_answer(&mut self.room, patience)
    }
}

/// The process id of the helper, once there is one: the parent of all workers.
pub fn helper_pid() -> Option<u32> {
    let helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    helper.as_ref()?.process.as_ref().map(Child::id)
}

/// Tells the helper to start a task. Starts the helper first if necessary.
fn start(task: &Task, passed: &[OwnedFd], memory: u64) -> io::Result<(OwnedFd, u64)> {
    let mut helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    for again in [true, false] {
        let one = match &mut *helper {
            Some(one) => one,
            none => none.insert(Helper::start()?),
        };
        let (ours, theirs) = wire::pair()?;
        wire::bound_sending(&ours, ROOM)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let message = serde_json::to_vec(&Message::Start { number, task: task.clone(), memory })?;
        let mut descriptors = vec![theirs.as_fd()];
        descriptors.extend(passed.iter().map(OwnedFd::as_fd));
        match wire::send(&one.socket, &[&message], &descriptors) {
            Ok(()) => return Ok((ours, number)),
            // The helper was killed or stopped. If it continues, it finds its socket closed and ends.
            Err(error) if again && is_gone(&error) => give_up(&mut helper),
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::BrokenPipe.into())
}

/// Tells the helper to stop a task.
fn stop(number: u64) {
    let mut helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(one), Ok(message)) = (&*helper, serde_json::to_vec(&Message::Stop { number }))
        && wire::send(&one.socket, &[&message], &[]).is_err_and(|error| is_gone(&error))
    {
        give_up(&mut helper);
    }
}

/// The next task gets a new helper. Warns once: callers take an error for a file that is not there, of which there are many.
fn give_up(helper: &mut Option<Helper>) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    *helper = None;
    if !WARNED.swap(true, Ordering::Relaxed) {
        note::warning(format_args!(
            "the helper process, which opens files of others, has ended or does not respond: files may be missing from the \
             result (it runs {} without the environment)",
            text::path(&this_program())
        ));
    }
}

/// Whether the receiver of a message has ended or does not accept it.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut};
    matches!(error.kind(), BrokenPipe | ConnectionReset | TimedOut)
}

/// The path of this program. `/proc/self/exe` works even if the file was replaced, but under Valgrind it leads to Valgrind.
fn this_program() -> PathBuf {
    let exe = PathBuf::from("/proc/self/exe");
    exe.read_link().ok().filter(|path| path.is_file()).unwrap_or(exe)
}

impl Helper {
    #[cfg(not(test))]
    fn start() -> io::Result<Self> {
        if super::sys::is_privileged_by_file() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "a command that is privileged through its file (file capabilities, set-user-ID) does not inspect others' \
                 processes and files",
            ));
        }
        let (ours, theirs) = wire::pair()?;
        let process = Command::new(this_program())
            .arg(super::helper::CALLED)
            .env_clear()
            .current_dir("/")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        wire::bound_sending(&ours, ROOM)?;
        Ok(Self { socket: ours, process: Some(process) })
    }

    /// The test program cannot be started as a helper, so it forks.
    #[cfg(test)]
    fn start() -> io::Result<Self> {
        let (ours, theirs) = wire::pair()?;
        if super::sys::fork()?.is_none() {
            drop(ours);
            super::helper::serve(&theirs);
            super::sys::exit();
        }
        let _: (Option<Command>, Option<Stdio>) = (None, None);
        wire::bound_sending(&ours, ROOM)?;
        Ok(Self { socket: ours, process: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the worker at the other end of this socket ends. It holds that end itself, and does not read from it.
    fn ends(socket: &OwnedFd) -> bool {
        let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
        poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&minute)).expect("a poll");
        let received = wire::receive(socket, &mut [0; 8], RecvFlags::DONTWAIT);
        // What it was told and has not read makes its end an error.
        received.map_or_else(
            |error| error.kind() == io::ErrorKind::ConnectionReset,
            |(count, _)| count == 0,
        )
    }

    fn runs(socket: &OwnedFd) -> bool {
        let received = wire::receive(socket, &mut [0; 8], RecvFlags::DONTWAIT);
        received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[test]
    fn a_worker_ends_when_nobody_waits_for_it() {
        let job = Job { task: Task::Sleep, passed: Vec::new() };
        let running = Running::begin(0, &job, Patience::NAMED, Instant::now()).expect("begun");
        let socket = running.socket.try_clone().expect("a descriptor");
        assert!(runs(&socket));
        drop(running);
        assert!(ends(&socket));
    }

    #[test]
    fn a_worker_that_is_kept_goes_on_until_it_is_dropped() {
        let kept = run(Task::Keep, Vec::new(), Patience::NAMED).expect("an answer").kept;
        let kept = kept.expect("it goes on");
        let socket = kept.socket.try_clone().expect("a descriptor");
        kept.send(b"a message").expect("room");
        kept.wait(Instant::now() + Duration::from_millis(50));
        assert!(runs(&socket));
        drop(kept);
        assert!(ends(&socket));
    }
}
