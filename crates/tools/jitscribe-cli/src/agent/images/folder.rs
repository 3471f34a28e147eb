//! The folder of images.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use code_agent::BuildId;
use code_image::{IMAGE_HEAD, build_id_of_image};
use jitscribe_inject::output;
use rustix::fs::{
    Access, AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, accessat, fchmod, fchown,
    flock, mkdirat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};

use crate::{Error, Result, text};

/// Where debuggers look for files by build-id, below a folder that they are told.
const BY_BUILD_ID: &str = ".build-id";
/// An image while it is written. Until it is complete, it does not begin as an ELF file does.
const PART: &str = "jitscribe-image.part";

/// The folder of images, of which this process is the only writer.
#[derive(Debug)]
pub struct Folder {
    open: OwnedFd,
    path: PathBuf,
}

/// An image that is there.
#[derive(Clone, Copy, Debug)]
pub struct FoundImage {
    pub id: BuildId,
    /// In bytes.
    pub size: u64,
    written: SystemTime,
}

/// Creates the folder, where `user` may write. This is done with the privileges of the start: in a folder that was there before,
/// only what is created belongs to the user.
///
/// # Errors
/// If the folder cannot be created, or is another user's trap.
pub fn create(folder: &Path, user: u32) -> Result<()> {
    let is_new = !folder.exists();
    output::Folder::create(folder)?;
    if is_new {
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder, readable).map_err(Error::file(folder))?;
    }
    let path = folder.join(BY_BUILD_ID);
    match DirBuilder::new().mode(0o755).create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.map_err(Error::file(&path))?,
    }
    let failed = |error: Errno| Error::file(&path)(error.into());
    let made = openat(CWD, &path, FOLDER, Mode::empty()).map_err(failed)?;
    fchmod(&made, Mode::from_raw_mode(0o755)).map_err(failed)?;
    if geteuid().is_root() {
        // Where this is not allowed, opening it says what to do.
        let _ = fchown(&made, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)));
    }
    Ok(())
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Folder {
    /// Opens the folder, and removes what an agent left that was killed.
    ///
    /// # Errors
    /// If this process may not write there, or another one does.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(BY_BUILD_ID);
        let failed = |error: Errno| refused(folder, &path, error);
        let open = openat(CWD, &path, FOLDER, Mode::empty()).map_err(failed)?;
        let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        accessat(&open, ".", access, AtFlags::EACCESS).map_err(failed)?;
        match flock(&open, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::Refused(format!(
                    "another agent keeps images in {}; end it, or choose another folder with --images",
                    text::path(folder)
                )));
            }
            Err(error) => return Err(failed(error)),
        }
        match unlinkat(&open, PART, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(Self { open, path }),
            Err(error) => Err(failed(error)),
        }
    }

    /// Where the images are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The images that are there, in the order in which they were written. Other files are left out, and never touched.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn images(&self) -> Result<Vec<FoundImage>> {
        let failed = |error| Error::file(&self.path)(error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let folder = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Some(folder) = folder.to_str().filter(|name| is_folder && name.len() == 2) else {
                continue;
            };
            let Ok(files) = fs::read_dir(entry.path()) else { continue };
            for file in files.flatten() {
                let name = file.file_name();
                let id = name.to_str().and_then(|name| BuildId::from_path(folder, name));
                found.extend(id.and_then(|id| self.image(id)));
            }
        }
        found.sort_unstable_by_key(|image| (image.written, image.id));
        Ok(found)
    }

    /// The image with this build-id, if it is one that an agent wrote.
    fn image(&self, id: BuildId) -> Option<FoundImage> {
        let path = self.path.join(id.path());
        let is_file =
            |metadata: &fs::Metadata| metadata.is_file() && metadata.uid() == geteuid().as_raw();
        fs::symlink_metadata(&path).ok().filter(is_file)?;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(&path).ok()?;
        let metadata = file.metadata().ok().filter(is_file)?;
        if metadata.len() == 0 {
            // What a power cut leaves of a file that was renamed before its content was on the disk.
            let _ = fs::remove_file(&path);
            return None;
        }
        let mut head = [0; IMAGE_HEAD];
        (&file).read_exact(&mut head).ok()?;
        let is_image = build_id_of_image(&head).is_some_and(|found| BuildId(found) == id);
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        is_image.then_some(FoundImage { id, size: metadata.len(), written })
    }

    /// Writes an image, completely or not at all.
    ///
    /// # Errors
    /// The system's error. Nothing is left of the image.
    pub fn write(&self, id: BuildId, content: &[u8]) -> io::Result<()> {
        let path = id.path();
        let (folder, _) = path.split_once('/').unwrap_or_default();
        match mkdirat(&self.open, folder, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let done = self.write_part(content).and_then(|()| self.name_part(id, &path));
        if done.is_err() {
            let _ = unlinkat(&self.open, PART, AtFlags::empty());
        }
        done
    }

    fn write_part(&self, content: &[u8]) -> io::Result<()> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let part = File::from(openat(&self.open, PART, flags, Mode::from_raw_mode(0o644))?);
        // All may read it, whatever the mask of the process is.
        fchmod(&part, Mode::from_raw_mode(0o644))?;
        // The head last: what is left of an agent that is killed is no ELF file, even under this name.
        let (head, rest) = content.split_at_checked(IMAGE_HEAD).unwrap_or((content, &[]));
        part.write_all_at(rest, head.len() as u64)?;
        part.write_all_at(head, 0)
    }

    fn name_part(&self, id: BuildId, path: &str) -> io::Result<()> {
        let keep = RenameFlags::NOREPLACE;
        match renameat_with(&self.open, PART, &self.open, path, keep) {
            Ok(()) => Ok(()),
            // The same image, which cannot be another one.
            Err(Errno::EXIST) if self.image(id).is_some() => {
                Ok(unlinkat(&self.open, PART, AtFlags::empty())?)
            }
            // The file system does not know the flag.
            Err(Errno::INVAL) => Ok(renameat(&self.open, PART, &self.open, path)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an image. One that is not there is removed.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self, id: BuildId) -> io::Result<()> {
        match unlinkat(&self.open, id.path(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The size of an image that is there, in bytes.
    pub fn size(&self, id: BuildId) -> u64 {
        self.image(id).map_or(0, |image| image.size)
    }
}

fn refused(folder: &Path, path: &Path, error: Errno) -> Error {
    let user = geteuid().as_raw();
    match error {
        Errno::ACCESS | Errno::PERM => Error::Refused(format!(
            "--images: the agent runs as user {user}, who may not write in {0}; type: chown -R {user} {1} (and let others enter the folders above), \
             or choose another folder",
            text::path(path),
            text::shell_path(path)
        )),
        error => Error::file(folder)(error.into()),
    }
}
