//! The worker task ([`crate::foreign`]) for one process that may be node: everything that accesses the process, its `/tmp` and its inspector.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use super::inspector::Inspector;
use super::listening::{self, Listener};
use super::process;
use crate::foreign::{Limit, Output, Owner};
use crate::record::agent::{Failure, Folder, Maps, OfferedPipe, PAUSE, SessionPipe, Target, Wait};

/// What a process evaluates, up to the arguments.
const SCRIPT: &str = include_str!("script.js");

/// The time to close an inspector after something failed.
const LAST: Duration = Duration::from_secs(5);

/// The task: has a process load the addon if it is node. The answer is an [`Outcome`]. If it has loaded it, the worker continues to run and keeps the addon
/// active.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeTask {
    /// The process.
    pub pid: u32,
    /// The path of the addon.
    pub addon: String,
    /// How long the process may take.
    pub time: Duration,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The process is not node, has ended, or may not be inspected.
    NotNode,
    /// Whether the addon was loaded, or why not; and what has become of the inspector.
    Done {
        /// Why it was not loaded.
        failure: Option<String>,
        /// The inspector.
        inspector: Ending,
    },
}

/// What has become of an inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It was not opened.
    NotOpened,
    /// It was asked to be opened, and was not in time. It may be later.
    Requested,
    /// It was open on this port, and still is.
    WasOpen(u16),
    /// It was opened on this port, and is closed again.
    Closed(u16),
    /// It was opened on this port, and could not be closed.
    StillOpen(u16),
}

impl NodeTask {
    /// Performs the task.
    pub fn perform(self, output: &mut Output) -> io::Result<()> {
        let mut ending = Ending::NotOpened;
        let mut session = None;
        let done = self.load(output, &mut ending, &mut session);
        let has_ended = || Target::open(self.pid).is_err();
        let outcome = match done {
            Ok(true) => Outcome::Done { failure: None, inspector: ending },
            Ok(false) => Outcome::NotNode,
            Err(_) if has_ended() => Outcome::NotNode,
            Err(failure) => Outcome::Done { failure: Some(failure.to_string()), inspector: ending },
        };
        output.bytes(&serde_json::to_vec(&outcome)?)?;
        session.map_or(Ok(()), |(session, target)| session.keep(output, Some(&target)))
    }

    /// Returns whether it is node.
    fn load(
        &self,
        output: &Output,
        ending: &mut Ending,
        session: &mut Option<(SessionPipe, Target)>,
    ) -> Result<bool, Failure> {
        let Ok(target) = Target::open(self.pid) else { return Ok(false) };
        let wait = Wait::new(Limit::of(self.time), Some(&target), Some(output));
        let (Ok(maps), Ok(root)) = (Maps::of(&target), target.root()) else { return Ok(false) };
        // Otherwise, these may belong to a program that the user may not inspect.
        if !target.has_same_owner()? || !process::is_node(maps, &wait)? {
            return Ok(false);
        }
        root.expect_file(&self.addon)?;
        enter_network(&target)?;
        // The process's descriptors can be listed with our privileges alone, if it has any itself.
        let listener = open(&target, &wait, ending)?;
        Owner { user: target.user, group: target.group }.become_this()?;
        let loaded = root.open("/tmp", OFlags::DIRECTORY).map_err(Failure::from).and_then(|tmp| {
            let folder = Folder::new(tmp);
            let offer = OfferedPipe::make(&folder, self.pid)?;
            evaluate(listener.address, &self.expression(&offer.path()), &wait)?;
            Ok(offer.taken())
        });
        if matches!(ending, Ending::Requested) {
            // Also if the command no longer waits.
            let wait = Wait::new(Limit::of(LAST), Some(&target), None);
            let port = listener.address.port();
            let is_closed = close(&target, listener, &wait).is_ok();
            *ending = if is_closed { Ending::Closed(port) } else { Ending::StillOpen(port) };
        }
        let pipe = loaded?;
        *session = Some((pipe, target));
        Ok(true)
    }

    fn expression(&self, pipe: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        format!("{SCRIPT}({}, {})", quoted(&self.addon), quoted(pipe))
    }
}

/// Has a process load the addon.
fn evaluate(address: SocketAddr, expression: &str, wait: &Wait<'_>) -> Result<(), Failure> {
    match Inspector::connect(address, wait)?.evaluate(expression)? {
        None => Ok(()),
        Some(why) => Err(Failure::Refused(why)),
    }
}

/// Opens a process's inspector, unless it is open.
fn open(target: &Target, wait: &Wait<'_>, ending: &mut Ending) -> Result<Listener, Failure> {
    // A process that is stopped would get the signal when it continues.
    while target.is_stopped()? {
        wait.pause(PAUSE)?;
    }
    let port = process::port(target);
    let all = listening::all(target)?;
    let before = listening::own(target, &all)?;
    if let Some(open) = before.iter().find(|listener| listener.address.port() == port) {
        *ending = Ending::WasOpen(port);
        return Ok(*open);
    }
    if all.iter().any(|other| other.address.port() == port && is_in_the_way(other)) {
        return Err(Failure::Refused(format!(
            "its inspector cannot be opened, as another process listens on port {port}"
        )));
    }
    let without =
        "it does not open its inspector by SIGUSR1, which would end it (--disable-sigusr1?)";
    target.signal(Signal::USR1, without)?;
    *ending = Ending::Requested;
    loop {
        let new = listening::own(target, &listening::all(target)?)?;
        let new = new.into_iter().filter(|new| !before.contains(new));
        if let Some(opened) = new.max_by_key(|new| new.address.port() == port) {
            return Ok(opened);
        }
        target.expect_alive()?;
        wait.pause(PAUSE)?;
    }
}

/// Whether no inspector can listen on this port of the loopback address.
fn is_in_the_way(other: &Listener) -> bool {
    let ip = other.address.ip().to_canonical();
    ip.is_unspecified() || ip == std::net::IpAddr::from([127, 0, 0, 1])
}

/// Has a process close its inspector, and waits until it has.
fn close(target: &Target, listener: Listener, wait: &Wait<'_>) -> Result<(), Failure> {
    Inspector::connect(listener.address, wait)?.close_it()?;
    while listening::all(target)?.contains(&listener) {
        wait.pause(PAUSE)?;
    }
    Ok(())
}

/// Enters the network namespace of a process, as a container has one of its own.
fn enter_network(target: &Target) -> Result<(), Failure> {
    let theirs =
        openat(target.folder(), "ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let ours = openat(CWD, "/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    if fstat(&theirs)?.st_ino == fstat(&ours)?.st_ino {
        return Ok(());
    }
    match move_into_link_name_space(theirs.as_fd(), Some(LinkNameSpaceType::Network)) {
        Err(Errno::PERM) => Err(Failure::Refused(
            "it is in another network namespace (a container), which only root may enter".into(),
        )),
        entered => Ok(entered?),
    }
}
