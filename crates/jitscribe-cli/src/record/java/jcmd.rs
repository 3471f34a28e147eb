//! What a JVM answers to a command, by the JDK's `jcmd`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::inner_pid;

/// Runs `jcmd PID WORDS…`.
///
/// # Errors
/// If it fails, there is none ([`io::ErrorKind::NotFound`]), or it has not answered in time ([`io::ErrorKind::TimedOut`]).
pub fn jcmd(pid: u32, words: &[&str], until: Instant) -> io::Result<String> {
    if !listens(pid) {
        return Err(io::Error::other(
            "it takes no commands (yet), and the signal that has it do so would end it",
        ));
    }
    let mut jcmd = Command::new("jcmd");
    jcmd.arg(pid.to_string()).args(words);
    jcmd.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Java answers its own user.
    if let Some((user, group)) = other_owner(pid)? {
        jcmd.uid(user).gid(group);
    }
    let mut child = jcmd.spawn()?;
    wait(&mut child, until)?;
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = [done.stderr, done.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let cause = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it failed");
    Err(io::Error::other(cause.to_owned()))
}

/// Waits for its end, and brings it about when it is late. What it prints has room in a pipe.
fn wait(child: &mut Child, until: Instant) -> io::Result<()> {
    while child.try_wait()?.is_none() {
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "does not answer jcmd"));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The user and group of a process, where we have to become them to be heard.
pub fn other_owner(pid: u32) -> io::Result<Option<(u32, u32)>> {
    let owner = fs::metadata(format!("/proc/{pid}"))?;
    let owner = (owner.uid(), owner.gid());
    let us = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Ok((us != owner && us.0 == 0).then_some(owner))
}

/// Whether a JVM takes commands: it has made a socket for them, or does so at a SIGQUIT, which `jcmd` sends it. One that has just
/// begun, or wants no signals (`-Xrs`), would be ended by that.
fn listens(pid: u32) -> bool {
    let inner = inner_pid(pid).unwrap_or(pid);
    let socket = format!("/proc/{pid}/root/tmp/.java_pid{inner}");
    Path::new(&socket).exists() || catches_quit(pid).unwrap_or(true)
}

fn catches_quit(pid: u32) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
    Some(caught >> (rustix::process::Signal::QUIT.as_raw() - 1) & 1 == 1)
}
