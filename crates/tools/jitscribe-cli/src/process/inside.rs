//! Creates files in a folder as seen by a process, which may be in a container.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::pread;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::root::{FOLDER, open_in_root, path_of};
use crate::foreign::{self, Output, Patience, Target, Task};

/// Creates the file that process `pid` sees as `path`, with the privileges of the process's user, who then owns the file. Returns
/// that user.
///
/// A path below `/proc/PID/root` would not be safe: a link that begins with `/` leads out of the process's file system into ours,
/// and the process may have mounted one of our folders there that its user may not write to.
///
/// # Errors
/// If there is no such folder, or the process's user may not write there; if the file exists, unless `force` is set; if the file
/// system does not respond; or if the kernel (before 5.6) has no `openat2` and the process's root is not ours.
pub fn write_inside(pid: u32, path: &Path, bytes: &[u8], force: bool) -> io::Result<u32> {
    let mut content = File::from(memfd_create("content", MemfdFlags::CLOEXEC)?);
    content.write_all(bytes)?;
    let task = WriteInside { pid, path: path.as_os_str().as_bytes().to_owned(), force };
    let answer = foreign::run(Task::Write(task), vec![content.into()], Patience::NAMED)?;
    let user = answer.bytes.first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(u32::from_ne_bytes(*user))
}

/// The task: create a file where a process sees it. The process's root may be a file system that a user serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteInside {
    pid: u32,
    path: Vec<u8>,
    force: bool,
}

impl WriteInside {
    /// Creates the file from the content of the first descriptor.
    pub fn perform(&self, passed: Vec<OwnedFd>, output: &mut Output) -> io::Result<()> {
        let content = passed.into_iter().next().ok_or(io::ErrorKind::InvalidInput)?;
        let path = Path::new(OsStr::from_bytes(&self.path));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let target = Target::open(self.pid)?;
        let top = target.file("root", FOLDER)?;
        // Read the user only now: a process that has gained other privileges since has left the mount namespace that it
        // controlled.
        let owner = target.effective()?;
        let us = geteuid();
        if !us.is_root() && us.as_raw() != owner.user {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        owner.become_this()?;
        let folder = open_in_root(&top, parent, FOLDER)?;
        let folder = path_of(&folder);
        // This creates a new file and opens no existing one.
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(&folder)?;
        let mut room = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            let count = pread(&content, &mut *room, at)?;
            let part = room.get(..count).filter(|part| !part.is_empty());
            let Some(part) = part else { break };
            file.as_file_mut().write_all(part)?;
            at += count as u64;
            output.progress()?;
        }
        let place = folder.join(name);
        let kept = if self.force { file.persist(&place) } else { file.persist_noclobber(&place) };
        kept.map_err(|failed| failed.error)?;
        output.bytes(&owner.user.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::symlink;
    use std::process::{self, Command, Stdio};

    use rustix::fs::{CWD, Mode, openat};
    use test_privilege::{Privilege, have};

    use super::*;

    #[test]
    fn is_the_file_of_that_name() {
        let own = tempfile::tempdir().unwrap();
        let file = own.path().join("file");
        let write = |text: &str, force| write_inside(process::id(), &file, text.as_bytes(), force);
        assert_eq!(write("text", false).unwrap(), geteuid().as_raw());
        assert_eq!(write("other", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        write("third", true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "third");
        assert_eq!(fs::read_dir(own.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_out_of_the_root_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        symlink("/elsewhere", root.path().join("tmp")).unwrap();
        symlink("../../../../../../elsewhere", root.path().join("up")).unwrap();
        let top = openat(CWD, root.path(), FOLDER, Mode::empty()).unwrap();
        for path in ["/tmp", "up", "../../tmp"] {
            let folder = open_in_root(&top, Path::new(path), FOLDER).unwrap();
            let (found, meant) = (path_of(&folder), root.path().join("elsewhere"));
            assert_eq!(fs::canonicalize(found).unwrap(), fs::canonicalize(meant).unwrap());
        }
    }

    #[test]
    fn a_mount_of_the_process_gives_no_access_beyond_its_users() {
        if !have(&[Privilege::OtherUsers, Privilege::Mounts]) {
            return;
        }
        let root_s = tempfile::tempdir().unwrap();
        fs::set_permissions(root_s.path(), Permissions::from_mode(0o755)).unwrap();
        let script = "mount --bind \"$1\" /tmp && echo mounted && exec sleep 600";
        let mut process = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
            .arg(root_s.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let done = write_inside(process.id(), Path::new("/tmp/file"), b"text", false);
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(fs::read_dir(root_s.path()).unwrap().count(), 0, "{done:?}");
        // Where ordinary users have no namespaces, it could not mount anything.
        if line == "mounted\n" {
            assert!(done.unwrap_err().to_string().contains("Permission denied"));
        }
    }
}
