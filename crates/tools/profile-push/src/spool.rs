//! Profiles on disk that wait to be sent.
//!
//! A folder with a file for each profile: `NUMBER-ID.otlp` or `NUMBER-ID.pyroscope`. Numbers are the order; the ID is a hash of the content, by which damage is
//! found. The content is what is sent, gzipped. A file is written under another name, synced and renamed, so that one with its final name is whole. What a
//! server rejects for good is kept as `….rejected`, and what is damaged as `….damaged`, until the space is needed.
//!
//! Several processes may add to one spool; one at a time sends. Two files are locked for this: `lock` during each change, and `sender` while a process sends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::profile_body::{BodyId, BodyKind, ProfileBody};

mod file_name;

pub use file_name::Spooled;
use file_name::{FileState, space};

/// Why the spool cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// A file or the folder cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The profile is larger than all that the spool may hold.
    #[error("the profile has {bytes} bytes, and the spool may hold {limit}")]
    TooLarge {
        /// The profile's size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Another process holds the lock, and does not come to its end.
    #[error("{}: another process has held this lock for {} s; end it, or use another folder", path.display(), LONGEST_LOCKED.as_secs())]
    Locked {
        /// The file that is locked.
        path: PathBuf,
    },
    /// There is no number left behind the last one.
    #[error("{}: no number is left for a new profile", folder.display())]
    NoNumber {
        /// The spool.
        folder: PathBuf,
    },
}

/// A change takes as long as writing one profile to the disk. A process that has the lock for longer was stopped.
const LONGEST_LOCKED: Duration = Duration::from_secs(30);

/// For `map_err`.
fn of(path: &Path) -> impl FnOnce(io::Error) -> SpoolError {
    let path = path.to_owned();
    move |source| SpoolError::File { path, source }
}

/// A folder of profiles that wait to be sent.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    kind: BodyKind,
    limit: u64,
    /// Locked while this process sends.
    sender: Option<File>,
    /// What waited when the folder was last listed, without what has been sent since. New profiles come behind it.
    listed: RefCell<VecDeque<Spooled>>,
}

/// What adding a profile did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Whether the same profile was there already, and is kept once.
    pub was_there: bool,
    /// How many profiles that waited were dropped, the oldest first, because there was no space.
    pub dropped: u64,
}

/// What a file of the spool holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The profile that was added.
    Whole(ProfileBody),
    /// Something else, which is set aside here.
    Damaged(PathBuf),
    /// Nothing: the file is gone.
    Gone,
}

/// What is in a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many profiles wait to be sent.
    pub waiting: u64,
    /// How many files were rejected or damaged, and are kept until their space is needed.
    pub set_aside: u64,
    /// The space of all files.
    pub bytes: u64,
}

/// Unlocked when it is dropped.
struct Locked {
    #[expect(dead_code, reason = "it is there to be dropped")]
    file: File,
}

impl Spool {
    /// Opens a spool, or makes one that only this user can read. Files in it take at most `limit` bytes. It gives and takes profiles of one kind.
    ///
    /// # Errors
    /// If the folder cannot be made or written.
    pub fn open(folder: &Path, kind: BodyKind, limit: u64) -> Result<Self, SpoolError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(of(folder))?;
        let spool = Self {
            folder: folder.to_owned(),
            kind,
            limit,
            sender: None,
            listed: RefCell::default(),
        };
        spool.lock().map(|_| spool)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a profile.
    #[must_use]
    pub fn path(&self, spooled: &Spooled) -> PathBuf {
        self.folder.join(spooled.name())
    }

    fn lock_file(&self, name: &str) -> Result<(File, PathBuf), SpoolError> {
        let path = self.folder.join(name);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        // In a folder of another user, it may be anything, such as a FIFO that waits for a reader.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
        let file = options.open(&path).map_err(of(&path))?;
        if !file.metadata().map_err(of(&path))?.is_file() {
            return Err(of(&path)(io::Error::other("not a regular file")));
        }
        Ok((file, path))
    }

    fn lock(&self) -> Result<Locked, SpoolError> {
        self.lock_within(LONGEST_LOCKED)
    }

    fn lock_within(&self, time: Duration) -> Result<Locked, SpoolError> {
        let (file, path) = self.lock_file("lock")?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked { file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < time => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Err(SpoolError::Locked { path }),
                Err(TryLockError::Error(source)) => return Err(SpoolError::File { path, source }),
            }
        }
    }

    /// All profiles, the oldest first; files of others are left out.
    fn list(&self) -> Result<Vec<Spooled>, SpoolError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(of(&self.folder))? {
            let entry = entry.map_err(of(&self.folder))?;
            let name = entry.file_name();
            // A file may go while the folder is listed.
            let Ok(metadata) = entry.metadata() else { continue };
            let size = metadata.len();
            all.extend(
                name.to_str()
                    .and_then(|name| Spooled::parse(name, size))
                    .filter(|_| metadata.is_file()),
            );
        }
        all.sort_unstable();
        Ok(all)
    }

    fn delete(&self, spooled: &Spooled) -> Result<bool, SpoolError> {
        let path = self.path(spooled);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(SpoolError::File { path, source }),
        }
    }

    fn sync_folder(&self) -> Result<(), SpoolError> {
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(of(&self.folder))
    }

    /// Adds a profile: when this returns, it is on the disk. If there is no space for it, the oldest ones are dropped, at first those that were set aside.
    ///
    /// # Errors
    /// If the profile cannot be written; then nothing was dropped, either.
    pub fn add(&self, body: &ProfileBody) -> Result<Added, SpoolError> {
        let _locked = self.lock()?;
        self.remove_remains();
        let all = self.list()?;
        let (id, size) = (body.id(), body.gzipped().len() as u64);
        let kind = body.kind();
        let is_same = |it: &&Spooled| it.id == id && it.kind == kind && it.size == size;
        if all.iter().filter(is_same).any(|it| it.state == FileState::Waiting) {
            return Ok(Added { was_there: true, dropped: 0 });
        }
        if space(size) > self.limit {
            return Err(SpoolError::TooLarge { bytes: size, limit: self.limit });
        }
        let number = match all.last() {
            Some(last) => last.number.checked_add(1),
            None => Some(1),
        };
        let number = number.ok_or_else(|| SpoolError::NoNumber { folder: self.folder.clone() })?;
        let new = Spooled { number, id, kind, state: FileState::Waiting, size };
        let dropped = self.put(&new, body, || self.make_space(&all, space(size)))?;
        Ok(Added { was_there: false, dropped })
    }

    /// Whether profiles of these sizes can be in it at the same time.
    ///
    /// # Errors
    /// [`SpoolError::TooLarge`] if they cannot.
    pub fn fits(&self, sizes: impl Iterator<Item = u64>) -> Result<(), SpoolError> {
        let bytes = sizes.fold(0_u64, |sum, size| sum.saturating_add(space(size)));
        if bytes > self.limit {
            return Err(SpoolError::TooLarge { bytes, limit: self.limit });
        }
        Ok(())
    }

    /// Puts two profiles in the place of one, so that they are sent when it would have been. Returns how many of the oldest were dropped because the two take more space.
    ///
    /// All three are on the disk for a moment: whenever the process is killed, the profile is there, whole or in parts, and dividing it again makes the same files.
    ///
    /// # Errors
    /// If the profiles cannot be written. Then the one stays.
    pub fn replace(&self, whole: &Spooled, halves: &[ProfileBody; 2]) -> Result<u64, SpoolError> {
        let _locked = self.lock()?;
        self.remove_remains();
        if !self.list()?.contains(whole) {
            // It was dropped.
            return Ok(0);
        }
        for body in halves {
            let size = body.gzipped().len() as u64;
            let half = Spooled { id: body.id(), size, ..whole.clone() };
            self.put(&half, body, || Ok(()))?;
        }
        self.delete(whole)?;
        // The halves come next.
        self.listed.borrow_mut().clear();
        self.make_space(&self.list()?, 0)
    }

    /// Writes a profile under another name, makes space, and gives it its name.
    fn put<T>(
        &self,
        new: &Spooled,
        body: &ProfileBody,
        make_space: impl FnOnce() -> Result<T, SpoolError>,
    ) -> Result<T, SpoolError> {
        let unfinished = self.folder.join(format!(".{}.new", new.name()));
        let written = self.write(&unfinished, body.gzipped());
        let written = written.and_then(|()| {
            let made = make_space()?;
            let path = self.path(new);
            fs::rename(&unfinished, &path).map_err(of(&path))?;
            self.sync_folder()?;
            Ok(made)
        });
        if written.is_err() {
            // It may not exist.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write(&self, path: &Path, content: &[u8]) -> Result<(), SpoolError> {
        let mut options = OpenOptions::new();
        options.create_new(true).write(true).mode(0o600);
        let mut file = options.open(path).map_err(of(path))?;
        file.write_all(content).and_then(|()| file.sync_all()).map_err(of(path))
    }

    /// Removes what a process left that was killed while it wrote: only the owner of the lock writes.
    fn remove_remains(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let inner = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".new"));
            if inner.is_some_and(|inner| Spooled::parse(inner, 0).is_some()) {
                // It is tried again next time.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn make_space(&self, all: &[Spooled], wanted: u64) -> Result<u64, SpoolError> {
        let mut used = all.iter().fold(wanted, |sum, it| sum.saturating_add(it.space()));
        let (waiting, aside): (Vec<_>, Vec<_>) =
            all.iter().partition(|it| it.state == FileState::Waiting);
        let mut dropped = 0_u64;
        for spooled in aside.into_iter().chain(waiting) {
            if used <= self.limit {
                break;
            }
            let is_gone = self.delete(spooled)?;
            used = used.saturating_sub(spooled.space());
            if is_gone && spooled.state == FileState::Waiting {
                dropped = dropped.saturating_add(1);
            }
        }
        Ok(dropped)
    }

    /// Whether this process may send: it may from now on, unless another one does.
    ///
    /// # Errors
    /// If the lock cannot be used.
    pub fn is_sender(&mut self) -> Result<bool, SpoolError> {
        if self.sender.is_some() {
            return Ok(true);
        }
        let (file, path) = self.lock_file("sender")?;
        match file.try_lock() {
            Ok(()) => {
                self.sender = Some(file);
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(source)) => Err(SpoolError::File { path, source }),
        }
    }

    /// Lets other processes send. Returns whether this one could.
    pub fn stop_sending(&mut self) -> bool {
        self.sender.take().is_some()
    }

    /// The oldest profile that waits to be sent.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn oldest(&self) -> Result<Option<Spooled>, SpoolError> {
        let mut listed = self.listed.borrow_mut();
        // The folder is not listed again for each profile.
        while let Some(first) = listed.front() {
            if fs::symlink_metadata(self.path(first)).is_ok() {
                return Ok(Some(first.clone()));
            }
            listed.pop_front();
        }
        let waits = |it: &Spooled| it.state == FileState::Waiting && it.kind == self.kind;
        *listed = self.list()?.into_iter().filter(waits).collect();
        Ok(listed.front().cloned())
    }

    /// Reads a profile. A damaged one is set aside, and so is one that is larger than all that the spool may hold.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, spooled: &Spooled) -> Result<Content, SpoolError> {
        let path = self.path(spooled);
        if spooled.size > self.limit {
            return self.rename(spooled, FileState::Damaged).map(Content::Damaged);
        }
        let mut options = OpenOptions::new();
        // Nothing that was put in the place of the file is followed, or waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Gone),
            opened => opened.map_err(of(&path))?,
        };
        let mut content = Vec::new();
        file.take(spooled.size.saturating_add(1)).read_to_end(&mut content).map_err(of(&path))?;
        if content.len() as u64 == spooled.size && BodyId::of(&content) == spooled.id {
            return Ok(Content::Whole(ProfileBody::from_gzipped(spooled.kind, content)));
        }
        self.rename(spooled, FileState::Damaged).map(Content::Damaged)
    }

    /// Removes a profile that was delivered.
    ///
    /// # Errors
    /// If the file cannot be removed. Then it is sent again.
    pub fn remove(&self, spooled: &Spooled) -> Result<(), SpoolError> {
        self.delete(spooled).map(|_| ())
    }

    /// Sets a profile aside that is not to be sent again, and returns where.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn set_aside(&self, spooled: &Spooled) -> Result<PathBuf, SpoolError> {
        self.rename(spooled, FileState::Rejected)
    }

    fn rename(&self, spooled: &Spooled, state: FileState) -> Result<PathBuf, SpoolError> {
        let from = self.path(spooled);
        let to = self.path(&Spooled { state, ..spooled.clone() });
        match fs::rename(&from, &to) {
            // It was dropped.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(to),
            renamed => renamed.map_err(of(&from)).map(|()| to),
        }
    }

    /// What is in it.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn usage(&self) -> Result<Usage, SpoolError> {
        let mut usage = Usage::default();
        for spooled in self.list()? {
            usage.bytes = usage.bytes.saturating_add(spooled.space());
            let count = match spooled.state {
                FileState::Waiting if spooled.kind == self.kind => &mut usage.waiting,
                FileState::Waiting => continue,
                FileState::Rejected | FileState::Damaged => &mut usage.set_aside,
            };
            *count = count.saturating_add(1);
        }
        Ok(usage)
    }
}

#[cfg(test)]
mod tests;
