//! Makes a JVM listen, with a file `.attach_pidN` and a SIGQUIT.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::socket;
use crate::record::agent::{Failure, Folder, Name, PAUSE, Target, Wait};
use crate::record::java::jvm;

/// After this much counted time without a socket, the signal is sent again: a JVM that has just started may have missed the file. A JVM
/// that got no processor time has not handled the first signal yet, and would print its stacks because of the second.
const AGAIN: Duration = Duration::from_secs(2);

/// Makes the JVM listen, and returns its socket's file.
pub fn listen(
    target: &Target,
    folder: &Folder,
    name: &str,
    wait: &Wait<'_>,
) -> Result<OwnedFd, Failure> {
    // A stopped JVM would get the signal when it continues, after the file has been removed, and would print its stacks.
    while target.is_stopped()? {
        wait.pause(PAUSE)?;
    }
    let _file = attach_file(folder, target)?;
    let mut signal_at = Duration::ZERO;
    loop {
        if wait.counted() >= signal_at {
            jvm::quit(target)?;
            signal_at = wait.counted() + AGAIN;
        }
        if let Some(socket) = socket::find(folder, name, target.user)? {
            return Ok(socket);
        }
        target.expect_alive()?;
        wait.pause(PAUSE)?;
    }
}

/// Creates the file that tells a JVM what the signal is for. The file is removed when the result is dropped; `None` if it
/// existed.
///
/// `jcmd` tries the JVM's working directory first, and the JVM looks in both places. We only use `/tmp`: if no file can be
/// created there, the JVM cannot create its socket either.
fn attach_file<'f>(folder: &'f Folder, target: &Target) -> Result<Option<Name<'f>>, Failure> {
    let name = format!(".attach_pid{}", target.inner);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match folder
        .make(name.clone(), |folder, name| openat(folder, name, flags, Mode::RUSR | Mode::WUSR))
    {
        Ok(file) => Some(file),
        // Another client is attaching too, or left the file behind. All that matters is that the file exists.
        Err(Errno::EXIST) => None,
        Err(error) => return Err(error.into()),
    };
    // A JVM ignores a file of another user.
    if statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid != target.user {
        return Err(Failure::Refused(format!("its /tmp/{name} belongs to another user")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
