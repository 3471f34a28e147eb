//! The limit on open descriptors. It is raised because this command holds descriptors of many processes.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard limit. Returns the resulting limit.
pub fn raise() -> u64 {
    let before = BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Makes a command start with the original limit: programs that use `select` rely on a low one.
pub fn restore_in(command: &mut Command) {
    let Some(before) = BEFORE.get().copied() else { return };
    let restore = move || -> io::Result<()> { Ok(setrlimit(Resource::Nofile, before)?) };
    // SAFETY: between fork and exec, the closure only makes a system call and allocates nothing.
    unsafe { command.pre_exec(restore) };
}
