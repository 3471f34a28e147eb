//! The helper: a second process of the command, which forks a worker for each task.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
    setsid, wait,
};
use serde::{Deserialize, Serialize};

use super::rights;
use super::sys;
use super::task::{Output, Task};
use super::wire;

/// The first argument that starts the program as the helper. No subcommand has this name.
pub const CALLED: &str = "look-at-foreign-processes";

/// The maximum number of workers, including those that cannot be killed.
const WORKERS: usize = 512;

/// A message from the command to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// Starts a task. The first attached descriptor is the socket for the answer, the others are for the task.
    Start {
        /// The number of the task, for [`Message::Stop`].
        number: u64,
        /// The task.
        task: Task,
        /// The limit on the worker's address space.
        memory: u64,
    },
    /// Stops a task whose answer is no longer needed.
    Stop {
        /// The number of the task.
        number: u64,
    },
}

/// If this process was started as the helper, does the helper's work and returns `true`.
pub fn main_of_helper() -> bool {
    let mut words = std::env::args_os();
    if words.len() != 2 || words.nth(1).is_none_or(|word| word != CALLED) {
        return false;
    }
    // Otherwise, any caller that provides a socket could use these privileges.
    if sys::is_privileged_by_file() {
        return true;
    }
    let stdin = std::io::stdin();
    // If a user starts the helper by hand, it does nothing.
    let is_ours = socket_peercred(&stdin).is_ok_and(|peer| Some(peer.pid) == getppid());
    if is_ours {
        sys::close_all();
        let _ = setsid();
        if let Ok(socket) = stdin.as_fd().try_clone_to_owned() {
            serve(&socket);
        }
    }
    true
}

/// Serves the command until it has ended.
pub fn serve(socket: &OwnedFd) {
    let mut workers: HashMap<u64, Pid> = HashMap::new();
    let mut room = vec![0; wire::PACKET];
    loop {
        reap(&mut workers);
        let readable = &mut [PollFd::new(socket, PollFlags::IN)];
        let soon = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        match poll(readable, (!workers.is_empty()).then_some(&soon)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        let Ok((count, mut passed)) = wire::receive(socket, &mut room, RecvFlags::empty()) else {
            break;
        };
        if count == 0 {
            break;
        }
        let message = room.get(..count).and_then(|bytes| serde_json::from_slice(bytes).ok());
        match message {
            Some(Message::Start { .. }) if !passed.is_empty() && workers.len() >= WORKERS => {
                let _ = Output::new(passed.remove(0)).finish(Err(rustix::io::Errno::AGAIN.into()));
            }
            Some(Message::Start { number, task, memory }) if !passed.is_empty() => {
                let answer = passed.remove(0);
                let helper = getpid();
                match sys::fork() {
                    Ok(None) => {
                        // Otherwise, a worker that cannot be killed would keep the helper's end of the socket open.
                        if sys::replace_by_output(socket.as_fd()).is_err() {
                            sys::exit();
                        }
                        work(helper, task, passed, answer, memory)
                    }
                    Ok(Some(pid)) => {
                        workers.insert(number, pid);
                        // Without it, a worker that gets no processor time is given up early.
                        let id = pid.as_raw_nonzero().get().unsigned_abs();
                        let _ = Output::new(answer).started(id);
                    }
                    Err(error) => {
                        let _ = Output::new(answer).finish(Err(error));
                    }
                }
            }
            Some(Message::Stop { number }) => {
                // The worker has not been waited for, so its pid has not been reused.
                if let Some(pid) = workers.get(&number) {
                    let _ = kill_process(*pid, Signal::KILL);
                }
            }
            _ => {}
        }
    }
    for pid in workers.into_values() {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Waits for workers that have ended, and forgets them.
fn reap(workers: &mut HashMap<u64, Pid>) {
    while let Ok(Some((ended, _))) = wait(WaitOptions::NOHANG) {
        workers.retain(|_, pid| *pid != ended);
    }
}

/// Runs a worker to its end.
fn work(helper: Pid, task: Task, passed: Vec<OwnedFd>, answer: OwnedFd, memory: u64) -> ! {
    let mut output = Output::new(answer);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The helper may have ended before that.
    if getppid() != Some(helper) {
        sys::exit();
    }
    rights::limit(memory);
    let done = catch_unwind(AssertUnwindSafe(|| task.perform(passed, &mut output)));
    let done = done.unwrap_or_else(|_| Err(io::Error::other("the worker failed")));
    let _ = output.finish(done);
    sys::exit()
}
