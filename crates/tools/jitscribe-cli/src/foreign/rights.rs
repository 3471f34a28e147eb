//! The privileges of a worker: first ours, to open what it needs; then those of the inspected process, with only a few system
//! calls.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Signal, Uid, getegid, geteuid, getgroups, getppid,
    set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use serde::{Deserialize, Serialize};

use super::filter;

/// The user and the group of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub user: u32,
    pub group: u32,
}

/// An inspected process: its folder in `/proc`, opened once. If the process ends and its pid is reused, opening files below the
/// folder fails.
#[derive(Debug)]
pub struct Target(OwnedFd);

impl Target {
    /// The process `pid`.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(pid: u32) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, format!("/proc/{pid}"), flags, Mode::empty())?))
    }

    /// Opens a file in the process's folder.
    ///
    /// # Errors
    /// The system's error.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.0, name, flags | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// The owner of the process's folder: root, if its own user may not inspect the process.
    ///
    /// # Errors
    /// If it has ended.
    pub fn owner(&self) -> io::Result<Owner> {
        let status = fstat(&self.0)?;
        Ok(Owner { user: status.st_uid, group: status.st_gid })
    }

    /// The effective user and group of the process, regardless of who may inspect it.
    ///
    /// # Errors
    /// If it has ended.
    pub fn effective(&self) -> io::Result<Owner> {
        Ok(self.effective_and_inner()?.0)
    }

    /// Like [`Self::effective`], with the id of the process in its own pid namespace.
    ///
    /// # Errors
    /// If it has ended.
    pub fn effective_and_inner(&self) -> io::Result<(Owner, u32)> {
        let mut text = String::new();
        File::from(self.file("status", OFlags::RDONLY)?).read_to_string(&mut text)?;
        // The kernel escapes newlines in the process's name.
        let numbers = |name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_ascii_whitespace())
        };
        // The effective id is the second of four.
        let id = |name| numbers(name)?.nth(1)?.parse().ok();
        let owner = id("Uid:").zip(id("Gid:")).map(|(user, group)| Owner { user, group });
        // Before Linux 4.1 there is only the id in our namespace.
        let inner = numbers("NStgid:").or_else(|| numbers("Tgid:"));
        let inner = inner.and_then(|mut ids| ids.next_back()?.parse().ok());
        owner.zip(inner).ok_or_else(|| io::Error::other("unexpected content in /proc/PID/status"))
    }
}

impl AsFd for Target {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A user without privileges.
const NOBODY: Owner = Owner { user: 65_534, group: 65_534 };

impl Owner {
    /// Replaces the privileges of this process by those of the owner, with no way to gain others. If the user may not be changed,
    /// it stays, because it has no privileges already.
    ///
    /// # Errors
    /// If the privileges could not be dropped.
    pub fn become_this(self) -> io::Result<()> {
        let parent = getppid();
        self.take_on()?;
        // Changing the user has cleared this setting.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != parent {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// The same for the command itself, which may outlive its parent. Only for a process with one thread: others would keep their
    /// privileges.
    ///
    /// # Errors
    /// If the privileges could not be dropped.
    pub fn take_on(self) -> io::Result<()> {
        if geteuid().is_root() {
            let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
            match set_thread_groups(&[]) {
                // Root of a user namespace may not change groups. That is fine for a process of its own.
                Err(Errno::PERM) if (user, group) == (geteuid(), getegid()) => {}
                done => done?,
            }
            set_thread_res_gid(group, group, group)?;
            set_thread_res_uid(user, user, user)?;
        }
        let none = CapabilitySet::empty();
        set_capabilities(
            None,
            CapabilitySets { effective: none, permitted: none, inheritable: none },
        )?;
        set_no_new_privs(true)?;
        // Processes of that user must not be able to trace this process or access its descriptors.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(())
    }

    /// Calls `act` as this user, without other groups, and is root again afterwards. Only for root, in a process with one thread.
    ///
    /// # Errors
    /// If the user could not be changed, `act` is not called. If root could not be restored, its result is lost.
    pub fn act_as<T>(self, act: impl FnOnce() -> T) -> io::Result<T> {
        let groups = getgroups()?;
        let group = getegid();
        set_thread_groups(&[])?;
        let restore = || {
            set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
            set_thread_res_gid(group, group, group)?;
            set_thread_groups(&groups)?;
            // Changing the user has cleared this setting.
            set_parent_process_death_signal(Some(Signal::KILL))
        };
        let became = set_thread_res_gid(group, Gid::from_raw(self.group), group)
            .and_then(|()| set_thread_res_uid(Uid::ROOT, Uid::from_raw(self.user), Uid::ROOT));
        let done = became.map(|()| act());
        restore()?;
        Ok(done?)
    }

    /// Like [`Self::become_this`]; in addition, this process can from then on only read its open descriptors and answer. A
    /// process can make its folder belong to root by making itself non-dumpable. Therefore we never stay root if there is
    /// another user to become: reading open descriptors needs no privileges.
    ///
    /// # Errors
    /// As for [`Self::become_this`]. A kernel without filters is accepted, except as root.
    pub fn lock_down(self) -> io::Result<()> {
        let is_root = self.user == 0 && geteuid().is_root();
        // In a user namespace there may be no such user.
        let is_nobody = is_root && NOBODY.become_this().is_ok();
        if !is_nobody {
            self.become_this()?;
        }
        let locked = filter::lock();
        if is_root && !is_nobody { locked } else { Ok(()) }
    }
}

/// Limits the memory of a worker, in case a hostile process makes it allocate without end.
pub fn limit(memory: u64) {
    let _ = setrlimit(Resource::As, Rlimit { current: Some(memory), maximum: Some(memory) });
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}
