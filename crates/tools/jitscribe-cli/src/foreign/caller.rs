//! The command's side: starts tasks, and waits for their answers with a deadline.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;

use super::budget::{Budget, Reservation};
use super::deadline::{Clock, Deadline, Limit};
use super::helper::Message;
use super::task::{Kind, Task};
use super::usage::Usage;
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
    process: Process,
}

impl Kept {
    /// Sends it a message. There is always space for the first one.
    ///
    /// # Errors
    /// If it has ended, or does not accept the message in time.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        send(&self.socket, &[message], &[], || self.process.usage())
    }

    /// Sends it a request, and waits for the answer. A worker that does not answer in time is stopped.
    ///
    /// # Errors
    /// As for [`run`].
    pub fn ask(&self, request: &[u8], patience: Patience) -> io::Result<Answer> {
        let mut running = self.running(patience, Clock::now())?;
        send(&running.socket, &[request], &[], || self.process.usage())?;
        running.wait_for_answer(&mut vec![0; wire::PACKET], patience)
    }

    fn running(&self, patience: Patience, clock: Clock) -> io::Result<Running> {
        Ok(Running {
            index: 0,
            number: self.number,
            socket: self.socket.try_clone()?,
            process: self.process,
            deadline: patience.deadline(clock),
            answer: Answer::default(),
            is_reader: false,
            is_over: false,
        })
    }
}

/// Waits until these workers have ended. Those that do not end in time are stopped, as are all if a signal arrives.
pub fn wait_for_ends<'k>(kept: impl IntoIterator<Item = &'k Kept>, patience: Patience) {
    let clock = Clock::now();
    let kept = kept.into_iter();
    let mut running: Vec<_> = kept.filter_map(|kept| kept.running(patience, clock).ok()).collect();
    let mut room = vec![0; wire::PACKET];
    loop {
        running.retain_mut(|one| one.go_on(&mut room, patience).is_none());
        let clock = Clock::now();
        let Some(pause) = running.iter().map(|one| one.deadline.pause(clock)).min() else { return };
        if wait(&running, pause) {
            return;
        }
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
    pub silence: Limit,
    /// The longest wait in total.
    pub whole: Limit,
    /// The maximum size of the answer in bytes.
    pub bytes: usize,
    /// The limit on the worker's address space.
    pub memory: u64,
    /// For all tasks of one [`run_all`] together: no task is started after this time.
    pub all: Limit,
}

impl Patience {
    /// For a process that the user named.
    pub const NAMED: Self = Self {
        silence: Limit::of(Duration::from_secs(10)),
        whole: Limit::of(Duration::from_secs(120)),
        bytes: 2 << 30,
        memory: 6 << 30,
        all: Limit::NEVER,
    };
    /// For one of many processes that the user did not name.
    pub const ONE_OF_MANY: Self = Self {
        silence: Limit::of(Duration::from_secs(5)),
        whole: Limit::of(Duration::from_secs(30)),
        bytes: 1 << 30,
        memory: 2 << 30,
        all: Limit::of(Duration::from_secs(60)),
    };

    fn deadline(&self, clock: Clock) -> Deadline {
        Deadline::new(self.silence, self.whole, clock)
    }
}

/// The maximum number of workers at a time.
const WORKERS: usize = 64;
/// The maximum number of workers that are not late yet. When a worker becomes late, another may start, so that workers that
/// never answer do not block others.
const PROMPT: usize = 4;
/// The maximum number of workers that read logs, late or not, because reading logs takes memory.
const READERS: usize = 4;
/// The time after which a worker is late, if it could work.
const LATE: Duration = Duration::from_millis(100);
/// The maximum number of descriptors in an answer.
const DESCRIPTORS: usize = 256;
/// How long to wait for space to send a message to the helper or a worker. Longer waits mean that a signal has stopped it.
const ROOM: Limit = Limit::of(Duration::from_secs(5));
/// How often to look at the receiver while there is no space.
const LOOK: Duration = Duration::from_millis(100);

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
    let mut all = Deadline::new(patience.all, patience.all, Clock::now());
    while jobs.peek().is_some() || !running.is_empty() {
        let clock = Clock::now();
        all.look_at_many(clock, || starved(&running));
        if all.is_over(clock) && jobs.peek().is_some() {
            let mut count = 0_u64;
            for (index, _) in jobs.by_ref() {
                done(index, Err(io::ErrorKind::QuotaExceeded.into()));
                count += 1;
            }
            note::warning(format_args!(
                "skipped {count} code logs or processes: inspecting others took longer than {} s",
                patience.all.counted.as_secs()
            ));
            continue;
        }
        let prompt = running.iter().filter(|one| one.deadline.counted() < LATE).count();
        let readers = running.iter().filter(|one| one.is_reader).count();
        let is_next_reader = jobs.peek().is_some_and(|(_, job)| job.task.is_reader());
        if prompt < PROMPT
            && running.len() < WORKERS
            && !(is_next_reader && readers >= READERS)
            && let Some((index, job)) = jobs.next()
        {
            match Running::begin(index, &job, patience) {
                Ok(one) => running.push_back(one),
                Err(error) => done(index, Err(error)),
            }
            continue;
        }
        let pause = running.iter().map(|one| one.deadline.pause(clock)).min();
        if wait(&running, pause.unwrap_or_default()) {
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

/// In which part of the time these workers could not work, between 0 and 1.
fn starved(running: &VecDeque<Running>) -> f64 {
    let sum: f64 = running.iter().map(|one| one.deadline.starved()).sum();
    let count = u32::try_from(running.len()).unwrap_or(u32::MAX);
    sum / f64::from(count.max(1))
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
    process: Process,
    deadline: Deadline,
    answer: Answer,
    /// Whether it reads a log.
    is_reader: bool,
    /// Whether it has answered.
    is_over: bool,
}

impl Running {
    /// Starts a task.
    pub fn begin(index: usize, job: &Job, patience: Patience) -> io::Result<Self> {
        let (socket, number, process) = start(&job.task, &job.passed, patience.memory)?;
        Ok(Self {
            index,
            number,
            socket,
            process,
            deadline: patience.deadline(Clock::now()),
            answer: Answer::default(),
            is_reader: job.task.is_reader(),
            is_over: false,
        })
    }

    /// Where the worker's messages come.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits for the answer of this worker alone. `room` is for [`wire::PACKET`] bytes.
    fn wait_for_answer(&mut self, room: &mut [u8], patience: Patience) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.go_on(room, patience) {
                return answer?;
            }
            if wait([&*self], self.deadline.pause(Clock::now())) {
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
                Some(Kind::Started) => self.process.has_started(rest),
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
                    let (number, process) = (self.number, self.process);
                    let kept = Some(Kept { socket, number, process });
                    return Some(Ok(Ok(Answer { kept, ..std::mem::take(&mut self.answer) })));
                }
                None => return Some(Err(io::ErrorKind::InvalidData.into())),
            }
            let too_much = self.answer.bytes.len() > patience.bytes
                || self.answer.descriptors.len() > DESCRIPTORS;
            if too_much {
                return Some(Err(io::ErrorKind::FileTooLarge.into()));
            }
            let clock = Clock::now();
            self.deadline.progress(clock);
            // One that sends all the time does not get around the limit for the whole.
            self.deadline.look(clock, || self.process.usage());
            if self.deadline.is_over(clock) {
                break;
            }
        }
        let clock = Clock::now();
        self.deadline.look(clock, || self.process.usage());
        self.deadline
            .is_over(clock)
            .then(|| Err(io::Error::new(io::ErrorKind::TimedOut, "not responding")))
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

/// Its process id, or 0. Who asks for it does not wait for a message to the helper, as it would with [`HELPER`].
static HELPER_ID: AtomicU32 = AtomicU32::new(0);

/// The process that performs a task: the helper, until it has forked the worker.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    id: Option<u32>,
    is_worker: bool,
}

impl Process {
    /// The helper says which process the worker is. The worker could say it again, and name another process that waits for a processor.
    fn has_started(&mut self, id: &[u8]) {
        if let (false, Ok(id)) = (self.is_worker, id.try_into()) {
            *self = Self { id: Some(u32::from_ne_bytes(id)), is_worker: true };
        }
    }

    fn usage(self) -> Option<Usage> {
        Usage::of_worker(self.id?)
    }
}

#[derive(Debug)]
struct Helper {
    socket: OwnedFd,
    id: u32,
    /// The helper ends when our end of the socket is closed. We never wait for it.
    _process: Option<Child>,
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
        let running = Running::begin(0, &job, patience)?;
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
        let one = &mut self.running;
        (one.deadline, one.is_over) = (patience.deadline(Clock::now()), false);
        send(&one.socket, &[request], &[], || one.process.usage())
    }

    fn receive(&mut self, patience: Patience) -> io::Result<Answer> {
        self.running.wait_for_answer(&mut self.room, patience)
    }
}

/// The process id of the helper, once there is one: the parent of all workers.
pub fn helper_pid() -> Option<u32> {
    Some(HELPER_ID.load(Ordering::Relaxed)).filter(|id| *id != 0)
}

/// Tells the helper to start a task. Starts the helper first if necessary.
fn start(task: &Task, passed: &[OwnedFd], memory: u64) -> io::Result<(OwnedFd, u64, Process)> {
    let mut helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    for again in [true, false] {
        let one = match &mut *helper {
            Some(one) => one,
            none => {
                let one = none.insert(Helper::start()?);
                HELPER_ID.store(one.id, Ordering::Relaxed);
                one
            }
        };
        let (ours, theirs) = wire::pair()?;
        wire::bound_sending(&ours, LOOK)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let message = serde_json::to_vec(&Message::Start { number, task: task.clone(), memory })?;
        let mut descriptors = vec![theirs.as_fd()];
        descriptors.extend(passed.iter().map(OwnedFd::as_fd));
        let process = Process { id: Some(one.id), is_worker: false };
        match send(&one.socket, &[&message], &descriptors, || process.usage()) {
            Ok(()) => return Ok((ours, number, process)),
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
        && send(&one.socket, &[&message], &[], || Usage::of_worker(one.id))
            .is_err_and(|error| is_gone(&error))
    {
        give_up(&mut helper);
    }
}

/// Sends a packet, and waits until the receiver has made space for it: for [`ROOM`].
///
/// # Errors
/// As for [`wire::send`].
fn send(
    socket: &OwnedFd,
    bytes: &[&[u8]],
    descriptors: &[BorrowedFd<'_>],
    usage: impl Fn() -> Option<Usage>,
) -> io::Result<()> {
    let mut deadline = None;
    loop {
        match wire::send(socket, bytes, descriptors) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let clock = Clock::now();
                let deadline = deadline.get_or_insert_with(|| Deadline::new(ROOM, ROOM, clock));
                deadline.look(clock, &usage);
                if deadline.is_over(clock) {
                    return Err(error);
                }
            }
            done => return done,
        }
    }
}

/// The next task gets a new helper. Warns once: callers take an error for a file that is not there, of which there are many.
fn give_up(helper: &mut Option<Helper>) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    *helper = None;
    HELPER_ID.store(0, Ordering::Relaxed);
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
        wire::bound_sending(&ours, LOOK)?;
        Ok(Self { socket: ours, id: process.id(), _process: Some(process) })
    }

    /// The test program cannot be started as a helper, so it forks.
    #[cfg(test)]
    fn start() -> io::Result<Self> {
        let (ours, theirs) = wire::pair()?;
        let Some(pid) = super::sys::fork()? else {
            drop(ours);
            super::helper::serve(&theirs);
            super::sys::exit();
        };
        let _: (Option<Command>, Option<Stdio>) = (None, None);
        wire::bound_sending(&ours, LOOK)?;
        let id = pid.as_raw_nonzero().get().unsigned_abs();
        Ok(Self { socket: ours, id, _process: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the worker at the other end of this socket ends. It holds that end itself, and does not read from it.
    fn ends(socket: &OwnedFd) -> bool {
        let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
        loop {
            poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&minute)).expect("a poll");
            match wire::receive(socket, &mut [0; 8], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return true,
                // The helper says when it has started the worker.
                Ok(_) => {}
                // What it was told and has not read makes its end an error.
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }

    fn runs(socket: &OwnedFd) -> bool {
        loop {
            match wire::receive(socket, &mut [0; 8], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    #[test]
    fn a_worker_ends_when_nobody_waits_for_it() {
        let job = Job { task: Task::Sleep, passed: Vec::new() };
        let running = Running::begin(0, &job, Patience::NAMED).expect("begun");
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
        std::thread::sleep(Duration::from_millis(50));
        assert!(runs(&socket));
        drop(kept);
        assert!(ends(&socket));
    }
}
