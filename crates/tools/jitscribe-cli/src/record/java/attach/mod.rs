//! A client of HotSpot's attach mechanism: does what the JDK's `jcmd` does, without starting a program.
//!
//! A JVM listens on the socket `/tmp/.java_pidN`, where N is its id in its own pid namespace and `/tmp` is that of its mount
//! namespace. It creates the socket when it gets a SIGQUIT while a file `.attach_pidN` of its user exists (`trigger`). It answers
//! only its own user.
//!
//! The worker that runs this has already become that user if necessary. Nothing here needs privileges, so a hostile process gains
//! nothing through its answers, its socket or its files that it could not do itself.

mod peer;
mod protocol;
mod socket;
mod trigger;

pub use peer::Peer;
pub use protocol::{Answer, Request};

use crate::record::agent::{Failure, Folder, Target, Wait};

/// Sends a request to a JVM. `folder` is its `/tmp`. Makes the JVM listen first if it does not.
pub fn ask(
    target: &Target,
    folder: &Folder,
    request: &Request,
    wait: &Wait<'_>,
) -> Result<Answer, Failure> {
    let name = format!(".java_pid{}", target.inner);
    let file = match socket::find(folder, &name, target.user)? {
        Some(file) => file,
        None => trigger::listen(target, folder, &name, wait)?,
    };
    let peer = Peer { pid: target.pid, user: target.user };
    socket::ask(&file, peer, request, wait)
}
