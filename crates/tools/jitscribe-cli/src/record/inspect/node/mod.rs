//! Node, which was started without flags: it is asked through its inspector to load an addon (`crates/bindings/jitscribe-node`), which announces its code for as long as a session
//! lasts, as the agent for Java does.
//!
//! Node opens its inspector when it gets a SIGUSR1. It is closed again as soon as the addon is loaded, because each user of the machine may connect to it. The inspector is found by
//! the sockets that the process listens on ([`listening`]), and evaluates a script ([`inspector`]).

mod inspector;
mod listening;
mod process;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use self::inspector::Inspector;
use self::listening::Listener;
pub use self::process::is_node;
use crate::foreign::{Limit, Owner};
use crate::record::agent::{Failure, Folder, OfferedPipe, PAUSE, Root, SessionPipe, Target, Wait};

/// The addon's file name, and the environment variable that names another file.
pub const ADDON: (&str, &str) = ("libjitscribe_node.so", "JITSCRIBE_NODE_ADDON");

/// What a process evaluates, up to the arguments.
const SCRIPT: &str = include_str!("script.js");

/// The time to close an inspector after something failed.
const LAST: Duration = Duration::from_secs(5);

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

/// Has it load the addon of this path. The inspector is closed again in any case.
pub fn load(
    target: &Target,
    root: &Root,
    wait: &Wait<'_>,
    addon: Option<&str>,
    ending: &mut Ending,
) -> Result<SessionPipe, Failure> {
    let addon = addon.ok_or_else(|| {
        Failure::Refused(format!("{} is not installed with this command", ADDON.0))
    })?;
    root.expect_file(addon)?;
    enter_network(target)?;
    // The process's descriptors can be listed with our privileges alone, if it has any itself.
    let listener = open(target, wait, ending)?;
    Owner { user: target.user, group: target.group }.become_this()?;
    let loaded = root.open("/tmp", OFlags::DIRECTORY).map_err(Failure::from).and_then(|tmp| {
        let folder = Folder::new(tmp);
        let offer = OfferedPipe::make(&folder, target.pid)?;
        evaluate(listener.address, &expression(addon, &offer.path()), wait)?;
        Ok(offer.taken())
    });
    if matches!(ending, Ending::Requested) {
        // Also if the command no longer waits.
        let wait = Wait::new(Limit::of(LAST), Some(target), None);
        let port = listener.address.port();
        let is_closed = close(target, listener, &wait).is_ok();
        *ending = if is_closed { Ending::Closed(port) } else { Ending::StillOpen(port) };
    }
    loaded
}

fn expression(addon: &str, pipe: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!("{SCRIPT}({}, {})", quoted(addon), quoted(pipe))
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
