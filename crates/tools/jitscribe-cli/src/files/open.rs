//! Opens files of any kind on any file system, including hostile ones.
//!
//! A path from a recording or a process may lead to a device, to a FIFO, or into a file system that a user serves (FUSE) and
//! that never responds. Therefore a worker opens it: see [`crate::foreign`].

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jitscribe_inject::files::{
    SourceFile, check_readable_by_all, may_read_what_we_may, pid_in_header,
};
use rustix::fs::{
    CWD, FileType, MemfdFlags, Mode, OFlags, Stat, fstat, fstatfs, ftruncate, memfd_create, openat,
};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::foreign::{self, Answer, Budget, Limit, Output, Owner, Patience, Reservation};
use crate::note;

use super::{Inode, next_data};

/// The most bytes that are copied of a file on a file system that a user serves. Holes do not count.
const COPIED: u64 = 1 << 30;

/// The most bytes that all copies may take. The copy of a file on a local file system may take all of it.
static COPIES: Budget = Budget::new(4 << 30);

/// A regular file opened for reading, or a copy of one in memory, which counts against [`COPIES`] until this is dropped.
#[derive(Debug)]
pub struct Opened {
    file: File,
    owner: u32,
    _copy: Reservation,
}

impl From<Opened> for SourceFile {
    fn from(opened: Opened) -> Self {
        Self::with(opened.file, opened.owner, opened._copy)
    }
}

impl Deref for Opened {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Read for Opened {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.file.read(room)
    }

    fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        self.file.read_to_end(bytes)
    }
}

impl jitdump::ReadAt for Opened {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        jitdump::ReadAt::read_at(&self.file, buffer, offset)
    }
}

impl Seek for Opened {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Opens a regular file for reading. Devices and FIFOs, which might block or have side effects, and files of the kernel's own
/// file systems are not opened.
///
/// # Errors
/// The system's error; [`io::ErrorKind::TimedOut`] if the file system does not respond.
pub fn open_regular(path: &Path) -> io::Result<Opened> {
    opened(path, What::Open { left: COPIES.left() })
}

fn opened(path: &Path, what: What) -> io::Result<Opened> {
    let answer = ask(path, what)?;
    let [copied, owner] = numbers(&answer.bytes)?;
    let file = answer.descriptors.into_iter().next().ok_or(io::ErrorKind::UnexpectedEof)?;
    Opened::given(file, copied, user(owner)?)
}

impl Opened {
    /// A file that a worker passed on, which belongs to `owner`, or a copy of so many bytes of it.
    ///
    /// # Errors
    /// If too much is copied already.
    pub fn given(file: OwnedFd, copied: u64, owner: u32) -> io::Result<Self> {
        let mut copy = Reservation::of(&COPIES);
        copy.add(copied)?;
        Ok(Self { file: file.into(), owner, _copy: copy })
    }

    /// How many bytes may still be copied.
    pub fn copies_left() -> u64 {
        COPIES.left()
    }
}

/// Like [`open_regular`], for a file that code of `user` names as its source: see
/// [`SourceFiles::open_source`](jitscribe_inject::files::SourceFiles::open_source).
///
/// # Errors
/// As for [`open_regular`]; [`io::ErrorKind::PermissionDenied`] if that user may not read it, or without a user, any.
pub fn open_source(path: &Path, user: Option<u32>) -> io::Result<Opened> {
    opened(path, What::OpenSource { left: COPIES.left(), user })
}

/// Like [`open_regular`]. If `owner` is given, the file must belong to that user: it may have been replaced since it was found.
///
/// # Errors
/// As for [`open_regular`], and if the file belongs to another user.
pub fn open_owned_by(owner: Option<u32>, path: &Path) -> io::Result<Opened> {
    let opened = open_regular(path)?;
    if owner.is_some_and(|owner| owner != opened.owner) {
        return Err(io::Error::other("replaced by a file of another user during the search"));
    }
    Ok(opened)
}

/// Decodes a worker's answer of `COUNT` numbers.
fn numbers<const COUNT: usize>(bytes: &[u8]) -> io::Result<[u64; COUNT]> {
    let mut numbers = [0; COUNT];
    let (told, rest) = bytes.as_chunks();
    if told.len() != COUNT || !rest.is_empty() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    for (number, told) in numbers.iter_mut().zip(told) {
        *number = u64::from_ne_bytes(*told);
    }
    Ok(numbers)
}

fn user(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Facts about a file that are known without opening it.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its identity.
    pub inode: Inode,
    /// Its owner.
    pub user: u32,
    /// Whether any user can create files in its folder or in one of the parent folders.
    pub is_open_to_all: bool,
    /// The time of its last modification: seconds and nanoseconds.
    pub modified: (i64, u64),
}

/// Returns the facts about a file of any kind.
///
/// # Errors
/// As for [`open_regular`].
pub fn facts(path: &Path) -> io::Result<Facts> {
    let [device, number, owner, is_open_to_all, seconds, nanoseconds] =
        numbers(&ask(path, What::Facts)?.bytes)?;
    let inode = Inode::new(device, number);
    let modified = (seconds.cast_signed(), nanoseconds);
    Ok(Facts { inode, user: user(owner)?, is_open_to_all: is_open_to_all != 0, modified })
}

/// Whether two paths lead to one file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    matches!((facts(a), facts(b)), (Ok(a), Ok(b)) if a.inode == b.inode)
}

/// Whether the path leads to a regular file.
pub fn is_file(path: &Path) -> bool {
    ask(path, What::IsFile).is_ok()
}

/// The pid of a jitdump, or of a log that is opened as one: see [`jitscribe_inject::files::SourceFiles::jitdump_pid`].
pub fn jitdump_pid(path: &Path) -> Option<u32> {
    let header = ask(path, What::Header).ok()?.bytes;
    pid_in_header(path, &header)
}

fn ask(path: &Path, what: What) -> io::Result<Answer> {
    let path = std::path::absolute(path)?.into_os_string().into_vec();
    let request = serde_json::to_vec(&OpenFile { path: path.clone(), what })?;
    let mut late = LATE.lock().unwrap_or_else(PoisonError::into_inner);
    let root = root_of(&path);
    if late.count >= MOST_LATE || root.is_some_and(|root| late.roots.contains(root)) {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "not opened, because other files did not respond",
        ));
    }
    let mut patience = Patience::ONE_OF_MANY;
    if late.lost > LOST {
        patience.silence = Limit::of(SHORT);
    }
    let answer = foreign::ask_for_file(&request, patience);
    if answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
        late.lost += patience.silence.counted;
        late.count += 1;
        late.roots.extend(root.map(<[u8]>::to_owned));
        if late.count == MOST_LATE {
            note::warning("too many files do not respond: no more files are searched for");
        }
    }
    answer
}

/// The time lost on files that did not respond.
struct Late {
    lost: Duration,
    count: u32,
    /// The roots below which one of these files was.
    roots: BTreeSet<Vec<u8>>,
}

static LATE: Mutex<Late> =
    Mutex::new(Late { lost: Duration::ZERO, count: 0, roots: BTreeSet::new() });

/// After this much lost time, the wait for each file becomes [`SHORT`].
const LOST: Duration = Duration::from_secs(30);
/// The shortened wait.
const SHORT: Duration = Duration::from_millis(100);
/// After this many files that did not respond, no more files are opened.
const MOST_LATE: u32 = 64;

/// The root folder of a process that contains a path: `/proc/PID/root`, or one that a worker holds, `/proc/PID/fd/NUMBER`.
fn root_of(path: &[u8]) -> Option<&[u8]> {
    let parts: Vec<&[u8]> = path.strip_prefix(b"/proc/")?.splitn(4, |byte| *byte == b'/').collect();
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let length = match *parts.as_slice() {
        [pid, b"root", ..] if is_number(pid) => pid.len() + b"/root".len(),
        [pid, b"fd", number, _] if is_number(pid) => pid.len() + b"/fd/".len() + number.len(),
        _ => return None,
    };
    path.get(..b"/proc/".len() + length)
}

/// A request to a worker about a path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenFile {
    path: Vec<u8>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum What {
    /// Opens a regular file, or copies it: at most `left` bytes.
    Open { left: u64 },
    /// The same, if this user may read it, or every user.
    OpenSource { left: u64, user: Option<u32> },
    /// Reads as many bytes of a regular file as a jitdump header has.
    Header,
    /// Checks whether there is a regular file.
    IsFile,
    /// Returns the facts about any file: see [`Facts`].
    Facts,
}

/// The task of the worker that opens files: serves requests until the command is gone.
pub fn open_all(output: &mut Output) -> io::Result<()> {
    let mut room = vec![0; 1 << 16];
    while let Some(request) = output.next_request(&mut room) {
        let done = serde_json::from_slice::<OpenFile>(request)
            .map_err(io::Error::from)
            .and_then(|request| request.perform(output));
        output.finish(done)?;
    }
    Ok(())
}

impl OpenFile {
    fn perform(&self, output: &mut Output) -> io::Result<()> {
        let path = Path::new(std::ffi::OsStr::from_bytes(&self.path));
        if let What::OpenSource { left, user } = self.what {
            return Found::source(path, user)?.answer(left, output);
        }
        let found = Found::at(path)?;
        let status = &found.status;
        if self.what == What::Facts {
            let is_open_to_all = u64::from(is_open_to_all(path));
            // Signed or not, depending on how rustix calls the system.
            let nanoseconds = u64::try_from(i128::from(status.st_mtime_nsec)).unwrap_or(0);
            let facts = [
                status.st_dev,
                status.st_ino,
                status.st_uid.into(),
                is_open_to_all,
                status.st_mtime.cast_unsigned(),
                nanoseconds,
            ];
            return output.bytes(facts.map(u64::to_ne_bytes).as_flattened());
        }
        if self.what == What::IsFile {
            return found.check_regular();
        }
        let found = found.open()?;
        let What::Open { left } = self.what else {
            let mut header = [0; jitdump::HEADER_SIZE as usize];
            let count = rustix::io::pread(&found.file, &mut header, 0)?;
            return output.bytes(header.get(..count).unwrap_or_default());
        };
        found.answer(left, output)
    }
}

/// The largest id of a user or a group. It owns no files, unlike 65534, the usual id of a user without rights.
const UNUSED: u32 = u32::MAX - 1;

/// A file at a path, which can no longer be replaced by another.
pub struct Found {
    /// Opened by `O_PATH` at first: no device has side effects then, and no FIFO blocks.
    pub file: OwnedFd,
    pub status: Stat,
    system: FileSystem,
}

impl Found {
    fn at(path: &Path) -> io::Result<Self> {
        Self::new(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// What was opened by `O_PATH`.
    pub fn new(file: OwnedFd) -> io::Result<Self> {
        Ok(Self { status: fstat(&file)?, system: FileSystem::of(&file), file })
    }

    /// Opens it for reading as far as this user may, or all users.
    fn source(path: &Path, user: Option<u32>) -> io::Result<Self> {
        let open = || Self::at(path)?.open();
        if may_read_what_we_may(user) {
            return open();
        }
        if geteuid().is_root() {
            let owner = Owner { user: user.unwrap_or(UNUSED), group: UNUSED };
            // Root of a user namespace may not become a user that is not in it.
            if let Ok(opened) = owner.act_as(open) {
                return opened;
            }
        }
        let opened = open()?;
        check_readable_by_all(path, &opened.inode())?;
        Ok(opened)
    }

    fn inode(&self) -> Inode {
        Inode::new(self.status.st_dev, self.status.st_ino)
    }

    fn check_regular(&self) -> io::Result<()> {
        let is_regular = FileType::from_raw_mode(self.status.st_mode) == FileType::RegularFile;
        if is_regular && self.system != FileSystem::Kernel {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }

    /// Opens it for reading, if it is a regular file.
    pub fn open(self) -> io::Result<Self> {
        self.check_regular()?;
        Ok(Self { file: reopen(&self.file, OFlags::RDONLY)?, ..self })
    }

    /// Answers with the open file, or a copy of at most `left` bytes.
    fn answer(self, left: u64, output: &mut Output) -> io::Result<()> {
        let owner = self.status.st_uid;
        let copied = self.pass_on(left, geteuid().as_raw(), output)?;
        output.bytes([copied, owner.into()].map(u64::to_ne_bytes).as_flattened())
    }

    /// Sends the open file to the command, which runs as user `us`, or a copy of at most `left` bytes. Returns how many were copied.
    pub fn pass_on(self, left: u64, us: u32, output: &mut Output) -> io::Result<u64> {
        if self.is_passed_on(us) {
            output.descriptor(self.file.as_fd())?;
            return Ok(0);
        }
        let most = if self.system == FileSystem::Local { left } else { left.min(COPIED) };
        let (copy, copied) = copy(&self.file, most, output)?;
        output.descriptor(copy.as_fd())?;
        Ok(copied)
    }

    /// Whether the file itself is sent to the command, which runs as user `us`.
    ///
    /// Reading or closing a file may block forever if a user serves its file system. The same holds for any file that another user writes to: the data may
    /// come from memory mapped from such a file system, with the file's lock held.
    pub fn is_passed_on(&self, us: u32) -> bool {
        let is_ours = self.status.st_uid == 0 || self.status.st_uid == us;
        self.system == FileSystem::Local && is_ours && self.status.st_mode & 0o022 == 0
    }
}

/// Whether any user can create files in one of the folders of a path, as in `/tmp`.
fn is_open_to_all(path: &Path) -> bool {
    path.ancestors().skip(1).any(|folder| {
        // A folder that cannot be inspected is treated as open to all.
        let status = openat(CWD, folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .and_then(|folder| fstat(&folder));
        status.is_ok_and(|status| status.st_mode & 0o002 != 0) || status.is_err()
    })
}

/// Opens a file found through `O_PATH`, regardless of what its path leads to by now.
///
/// # Errors
/// The system's error.
pub fn reopen(found: &OwnedFd, flags: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Copies a file into memory and keeps its holes. Also returns the number of copied bytes.
fn copy(file: &OwnedFd, most: u64, output: &mut Output) -> io::Result<(OwnedFd, u64)> {
    let copy = memfd_create("copy", MemfdFlags::CLOEXEC)?;
    let size = fstat(file)?.st_size.unsigned_abs();
    ftruncate(&copy, size)?;
    let (mut at, mut copied) = (0, 0);
    let mut room = vec![0; 1 << 16];
    while let Some(data) = next_data(file, at..size)? {
        at = data.start;
        while at < data.end {
            let left = usize::try_from(data.end - at).unwrap_or(room.len()).min(room.len());
            let part = room.get_mut(..left).unwrap_or_default();
            let count = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *part, at))?;
            let part = part.get(..count).filter(|part| !part.is_empty());
            let Some(part) = part else { return Ok((copy, copied)) };
            copied += count as u64;
            if copied > most {
                return Err(io::Error::other(
                    "too large to copy, which is needed because another user can write to it or serves it",
                ));
            }
            // A short write to memory means that there is no more memory.
            if rustix::io::pwrite(&copy, part, at)? < count {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            at += count as u64;
            output.progress()?;
        }
    }
    Ok((copy, copied))
}

/// Who serves a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// This machine's kernel, from memory or a disk.
    Local,
    /// The kernel, with generated content: devices, settings, processes.
    Kernel,
    /// A process or another machine, or unknown.
    Served,
}

impl FileSystem {
    /// The kind of this file's file system. If it cannot be determined, it counts as served.
    pub fn of(file: &OwnedFd) -> Self {
        let kind = fstatfs(file).map_or(0, |system| system.f_type);
        let kind = (kind.cast_unsigned() & 0xffff_ffff) as u32;
        if LOCAL.contains(&kind) {
            Self::Local
        } else if KERNEL.contains(&kind) {
            Self::Kernel
        } else {
            Self::Served
        }
    }
}

/// The `f_type` of file systems in memory and on disks. A memfd has that of `tmpfs`. `overlayfs` is not listed, because its
/// layers may be file systems that a user serves.
const LOCAL: &[u32] = &[
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x0000_ef53, // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
    0x5265_4973, // reiserfs
    0x3153_464a, // jfs
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0x0000_4d44, // vfat
    0x0000_9660, // isofs
];

/// The `f_type` of the kernel's own file systems: `proc`, `sysfs` and others.
const KERNEL: &[u32] = &[
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0xf97c_ff8c, // selinuxfs
    0x0000_1cd1, // devpts
    0xcafe_4a11, // bpf
    0x6e73_6673, // nsfs
    0x1980_0202, // mqueue
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("jit-1.dump");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let begun = std::time::Instant::now();
        for path in
            [fifo.as_path(), folder.path(), Path::new("/dev/zero"), Path::new("/proc/self/maps")]
        {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{path:?}");
            assert!(!is_file(path));
            assert_eq!(jitdump_pid(path), None);
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
        let error = open_regular(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn whose_root_a_path_is_below() {
        assert_eq!(root_of(b"/proc/12/root/tmp/x"), Some(&b"/proc/12/root"[..]));
        assert_eq!(root_of(b"/proc/12/fd/7/tmp/x"), Some(&b"/proc/12/fd/7"[..]));
        for other in
            [&b"/tmp/x"[..], b"/proc/12/exe", b"/proc/self/root/x", b"/proc/12", b"/proc/12/fd/7"]
        {
            assert_eq!(root_of(other), None);
        }
    }

    #[test]
    fn a_file_is_opened_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut text = String::new();
        open_regular(&link).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(is_file(&link) && same_file(&file, &link));
        assert!(!same_file(&file, folder.path()));
    }

    #[test]
    fn a_file_that_others_may_write_to_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "text").unwrap();
        for (mode, is_copied) in [(0o644, false), (0o664, true), (0o646, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mut opened = open_regular(&path).unwrap();
            let is_other = opened.metadata().unwrap().ino() != fs::metadata(&path).unwrap().ino();
            // On a file system that somebody serves, all are.
            let is_local =
                FileSystem::of(&fs::File::open(&path).unwrap().into()) == FileSystem::Local;
            assert_eq!(is_other, is_copied || !is_local, "{mode:o}");
            let mut text = String::new();
            opened.read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
    }
}
