//! Inspects processes and files of other users without being blocked or harmed by them.
//!
//! Everything that a foreign process controls (its memory, its descriptors, the paths it names, its sockets) is accessed
//! only by a [`Task`], which runs in a process of its own: see `docs/design/foreign-processes.md`.
//!
//! - The command starts one **helper** on demand: the same program with an empty environment, a session of its own and no
//!   descriptor except a socket ([`helper`]).
//! - The helper forks a **worker** for each task. The worker opens what it needs, drops its privileges ([`rights`]), reads, and
//!   answers with bytes and descriptors ([`task`]).
//! - The command waits with a deadline ([`caller`], [`deadline`]), which counts only the time in which the worker could work
//!   ([`usage`]). It kills a late worker and never waits for its end: a process that
//!   sleeps in a page fault of a file system that does not respond cannot even be killed.

mod budget;
mod caller;
mod cpu_clock;
mod deadline;
mod filter;
mod helper;
mod leftovers;
mod pending;
mod rights;
mod sys;
mod task;
mod turns;
mod usage;
mod wire;

#[cfg(test)]
pub mod busy;
#[cfg(test)]
mod tests;

pub use budget::{Budget, Reservation};
pub use caller::{
    Answer, Conversation, Job, Kept, Patience, ask_for_file, helper_pid, run, run_all,
    wait_for_ends,
};
pub use cpu_clock::processor_time;
pub use deadline::{Clock, Deadline, Limit};
pub use helper::main_of_helper;
pub use leftovers::Leftovers;
pub use pending::Pending;
pub use rights::{Owner, Target};
pub use task::{Output, Progress, Task};
pub use turns::in_turns;
pub use usage::Usage;
