//! Workers that answer, that do not, and what they may do.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid, getuid};

use super::busy::{self, Busy};
use super::*;

const PATIENCE: Patience = Patience {
    silence: Limit::of(Duration::from_millis(300)),
    whole: Limit::of(Duration::from_secs(30)),
    bytes: 1 << 20,
    memory: 1 << 30,
    all: Limit::NEVER,
};

/// Much longer than any of these tests takes on a busy machine.
const HOUR: Duration = Duration::from_secs(3600);

/// How long a worker waits on a busy processor.
const STARVED: Duration = Duration::from_secs(2);

#[test]
fn the_mappings_of_a_process_are_told() {
    let task = Task::Mappings { pid: std::process::id() };
    let answer = run(task, Vec::new(), Patience::NAMED).unwrap();
    let text = String::from_utf8(answer.bytes).unwrap();
    assert!(text.contains("[stack]"), "{text}");
    let error = run(Task::Mappings { pid: 0x7fff_ffff }, Vec::new(), PATIENCE).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn one_that_does_not_answer_is_given_up_and_keeps_no_other_from_answering() {
    let begun = Instant::now();
    let ours = std::process::id();
    let silent = |index: usize| index.is_multiple_of(3);
    let jobs = (0..90).map(|index| Job {
        task: if silent(index) { Task::Sleep } else { Task::Mappings { pid: ours } },
        passed: Vec::new(),
    });
    let mut answers = 0;
    run_all(jobs, PATIENCE, |index, answer| {
        answers += 1;
        match answer {
            Ok(answer) => assert!(!silent(index) && !answer.bytes.is_empty()),
            Err(error) => {
                assert!(
                    silent(index) && error.kind() == io::ErrorKind::TimedOut,
                    "{index}: {error}"
                );
            }
        }
    });
    assert_eq!(answers, 90);
    // One after the other, they would take so long on an idle machine.
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn one_that_is_stopped_or_uses_a_processor_without_an_answer_is_given_up() {
    // Not earlier by the clock on the wall.
    let silence = Limit { wall: HOUR, ..PATIENCE.silence };
    for task in [Task::Stop, Task::Spin] {
        let error = run(task, Vec::new(), Patience { silence, ..PATIENCE }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

#[test]
fn one_without_processor_time_is_waited_for() {
    let Some(busy) = Busy::start() else { return };
    let begun = Instant::now();
    let silence = Limit { wall: HOUR, ..PATIENCE.silence };
    let patience = Patience { silence, whole: silence, ..PATIENCE };
    let answer = run(Task::Starve(busy.cpu), Vec::new(), patience).expect("an answer");
    assert_eq!(answer.bytes, b"starved");
    // It was silent for much longer than it may be if it can work.
    assert!(begun.elapsed() >= STARVED && STARVED > PATIENCE.silence.counted * 5);
    // Such a wait has an end, too.
    let silence = Limit { wall: STARVED / 4, ..silence };
    let error = run(Task::Starve(busy.cpu), Vec::new(), Patience { silence, ..patience });
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[test]
fn all_tasks_have_a_deadline_together() {
    let jobs = (0..200).map(|_| Job { task: Task::Sleep, passed: Vec::new() });
    let patience = Patience { all: Limit::of(Duration::from_millis(200)), ..PATIENCE };
    let (mut late, mut left_out) = (0, 0);
    run_all(jobs, patience, |_, answer| match answer.unwrap_err().kind() {
        io::ErrorKind::TimedOut => late += 1,
        io::ErrorKind::QuotaExceeded => left_out += 1,
        other => panic!("{other}"),
    });
    assert!(late > 0 && left_out > 0 && late + left_out == 200, "{late} {left_out}");
}

#[test]
fn an_answer_that_is_too_large_is_refused() {
    let task = Task::Mappings { pid: std::process::id() };
    let error = run(task, Vec::new(), Patience { bytes: 10, ..PATIENCE }).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
}

/// What a worker does that does nothing.
pub fn sleep() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// What a worker does that uses a processor.
pub fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// What a worker does that is stopped.
pub fn stop() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
    sleep()
}

/// What a worker does that gets little time on its processor.
pub fn starve(cpu: usize, output: &mut Output) -> io::Result<()> {
    busy::stay_on(cpu)?;
    rustix::process::nice(19)?;
    let ours = std::process::id();
    let waited = || Some(Usage::of_worker(ours)?.threads.first()?.waited);
    while waited().ok_or(io::ErrorKind::NotFound)? < STARVED {}
    output.bytes(b"starved")
}

/// What a worker says of itself, once it is locked down.
pub fn who_am_i(owner: Owner, output: &mut Output) -> io::Result<()> {
    owner.lock_down()?;
    // These were opened before; so was what is read.
    let opened = fs::File::open("/etc/hostname").map(drop).map_err(|error| error.raw_os_error());
    let sent = rustix::process::kill_process(
        rustix::process::Pid::from_raw(1).unwrap(),
        rustix::process::Signal::WINCH,
    );
    output.bytes(format!("{opened:?} {sent:?}").as_bytes())
}

#[test]
fn a_locked_worker_can_open_nothing_and_signal_nobody() {
    let owner = Owner { user: getuid().as_raw(), group: rustix::process::getgid().as_raw() };
    let owners = [owner, Owner { user: 65_534, group: 65_534 }];
    for owner in owners.into_iter().take(if geteuid().is_root() { 2 } else { 1 }) {
        let answer = run(Task::WhoAmI(owner), Vec::new(), Patience::NAMED).unwrap();
        let text = String::from_utf8(answer.bytes).unwrap();
        assert_eq!(
            text,
            "Err(Some(1)) Err(Os { code: 1, kind: PermissionDenied, message: \"Operation not permitted\" })"
        );
    }
}
