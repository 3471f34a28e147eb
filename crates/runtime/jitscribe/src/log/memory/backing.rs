//! The file behind a log, and its growth.

use fallible::PathText;
use std::ffi::CStr;
use std::fmt::{self, Write};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

use guest::{OwnFile, file_size_limit};
use rustix::fs::{
    FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals,
    fstatfs, ftruncate, lstat, memfd_create, mkdir, open,
};
use rustix::io::{Errno, pwrite, pwritev};
use rustix::process::geteuid;

use super::Failure;

/// Maximum number of dumps of the same name next to each other.
const MOST_FILES: u32 = 16;

/// The memory of a log.
#[derive(Debug)]
pub(crate) enum Backing {
    /// A memfd: visible only in the process's list of files. Its size is that of the mapping from the beginning, and only what
    /// is written takes memory. So it grows through its mapping, without a descriptor.
    Memory(OwnFile),
    /// A file, which tools that read dumps read to its end.
    File(OwnFile, FilePath),
    /// Shared anonymous memory, if memfds are not available: visible in the list of mappings.
    Anonymous,
}

/// The path of a log's file, which changes in the child of a fork.
#[derive(Debug)]
pub(crate) struct FilePath {
    first: PathText,
    /// Null, or the path of the file that replaced the first one. Never freed: another thread may be reading it.
    later: AtomicPtr<PathText>,
}

impl FilePath {
    fn new(path: PathText) -> Self {
        Self { first: path, later: AtomicPtr::default() }
    }

    pub(crate) fn get(&self) -> &PathText {
        // SAFETY: it is null, or `become_path` stored it from a reference that is valid for ever, and nothing writes through it.
        #[allow(unsafe_code)]
        unsafe { self.later.load(Acquire).as_ref() }.unwrap_or(&self.first)
    }

    /// The path in the process that created the log; its children put their files next to it.
    pub(crate) fn first(&self) -> &PathText {
        &self.first
    }

    /// Sets the path, in the child of a fork.
    pub(crate) fn become_path(&self, path: &'static PathText) {
        self.later.store(std::ptr::from_ref(path).cast_mut(), Release);
    }
}

impl Backing {
    /// A memfd that cannot shrink, so that readers may map it.
    pub(crate) fn memory() -> Result<Self, Failure> {
        let failure = |cause| Failure::of("memfd_create", cause);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Since Linux 6.3, systems may require this flag; before, it is invalid.
        let file = memfd_create("jitscribe", flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| memfd_create("jitscribe", flags))
            .map_err(failure)?;
        Ok(Self::Memory(OwnFile::new(file).map_err(failure)?))
    }

    /// Creates a file of this name, and returns its path: in `dir/2` if there already is one in `dir`, and so on. perf requires
    /// this very name; another scribe of the process may have taken it, or an earlier process with the same pid.
    pub(crate) fn new_file(path: &PathText) -> Result<(Self, PathText), Failure> {
        const NO_MEMORY: &str = "a path for the code log";
        // Allocated before the file is created: if it failed afterwards, the file would stay.
        let own = copy(path)?;
        let taken = match Self::file(path) {
            Err(failure) if failure.cause == Errno::EXIST => failure,
            made => return Ok((made?, own)),
        };
        let (Some(directory), Some(name)) = (path.as_path().parent(), path.as_path().file_name())
        else {
            return Err(taken);
        };
        for number in 2..=MOST_FILES {
            let number = fallible::attempt(|| fallible::text!("{number}")).ok();
            let directory = PathText::new(directory).zip(number);
            let directory = directory.and_then(|(directory, number)| directory.join(&*number));
            let directory = directory.ok_or(Failure::memory(NO_MEMORY))?;
            make_private(&directory).map_err(|cause| Failure::at(directory.as_path(), cause))?;
            let path = directory.join(name).ok_or(Failure::memory(NO_MEMORY))?;
            match Self::file(&path) {
                Err(failure) if failure.cause == Errno::EXIST => {}
                made => return Ok((made?, path)),
            }
        }
        Err(taken)
    }

    /// Creates a new file that only this user can access, without following links or replacing a file.
    fn file(path: &PathText) -> Result<Self, Failure> {
        let failure = |cause| Failure::at(path.as_path(), cause);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = copy(path)?;
        let file = open(path.as_c_str(), flags, Mode::RUSR | Mode::WUSR).map_err(failure)?;
        let file = OwnFile::new(file).inspect_err(|_| remove(path)).map_err(failure)?;
        Ok(Self::File(file, FilePath::new(own)))
    }

    /// The alternative if [`Self::memory`] fails.
    pub(crate) fn instead() -> Option<Self> {
        Some(Self::Anonymous)
    }

    /// The file, if it is one.
    pub(crate) fn own(&self) -> Option<&OwnFile> {
        match self {
            Self::Memory(file) | Self::File(file, _) => Some(file),
            Self::Anonymous => None,
        }
    }

    /// The file's descriptor, as long as it is still the file's.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.own()?.get()
    }

    /// Maximum number of bytes of the log. Setting a larger file size raises a signal.
    pub(crate) fn most(&self) -> usize {
        match self {
            Self::Memory(_) => file_limit(),
            Self::File(..) | Self::Anonymous => usize::MAX,
        }
    }

    /// Gives a memfd the size of its mapping. The mapping must already exist: if a process locks all of its memory, a mapping
    /// created later would have all of its pages at once.
    pub(crate) fn set_size(&self, size: usize) -> Result<(), Errno> {
        let Self::Memory(file) = self else { return Ok(()) };
        if size > file_limit() {
            return Err(Errno::FBIG);
        }
        let file = file.get().ok_or(Errno::BADF)?;
        retry(|| ftruncate(file, size as u64))?;
        // Without the seal, readers copy instead of mapping.
        let _ = fcntl_add_seals(file, SealFlags::SHRINK);
        Ok(())
    }

    /// Writes bytes to a memfd of sufficient size. `false` if it is another backing, or if that failed.
    pub(crate) fn write(&self, at: usize, mut bytes: &[u8]) -> bool {
        let Self::Memory(file) = self else { return false };
        // Writing beyond this limit raises a signal.
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= file_limit());
        let Some(file) = file.get().filter(|_| fits) else { return false };
        let mut at = at as u64;
        while !bytes.is_empty() {
            match retry(|| pwrite(file, bytes, at)) {
                Ok(written @ 1..) => {
                    bytes = bytes.get(written..).unwrap_or_default();
                    at += written as u64;
                }
                _ => return false,
            }
        }
        true
    }

    /// Ensures that `length` bytes from `at` on permanently have memory or disk space: a store to a shared mapping without it
    /// raises a signal. `names` are used to find the file if its descriptor is lost.
    pub(crate) fn grow(
        &self,
        at: usize,
        length: usize,
        names: impl Iterator<Item = MapName>,
    ) -> Result<(), Errno> {
        let Some(file) = self.own() else { return Ok(()) };
        // Growing beyond this limit raises a signal, too.
        if at + length > file_limit() {
            return Err(Errno::FBIG);
        }
        let allocate = |file: BorrowedFd<'_>| match self {
            Self::File(..) if is_extended(file) => allocate_by_writing(file, at, length),
            _ => allocate(file, at, length),
        };
        if let Some(file) = file.get() {
            return allocate(file);
        }
        let named = match self {
            Self::File(_, path) => file.open_at(path.get().as_c_str()),
            _ => None,
        };
        let mut names = names;
        let found = named.or_else(|| names.find_map(|name| file.open_at(name.as_c_str())));
        allocate(found.ok_or(Errno::BADF)?.as_fd())
    }
}

/// A name that the kernel has for a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapName {
    text: [u8; Self::SIZE],
    length: usize,
}

impl MapName {
    /// `/proc/self/map_files/`, two addresses, a dash and a NUL.
    const SIZE: usize = 56;

    pub(crate) fn new(start: usize, end: usize) -> Self {
        let mut name = Self { text: [0; Self::SIZE], length: 0 };
        // There is space for the longest.
        let _ = write!(name, "/proc/self/map_files/{start:x}-{end:x}");
        name
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.text).unwrap_or_default()
    }
}

impl fmt::Write for MapName {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.text.get_mut(self.length..end).filter(|_| end < Self::SIZE);
        place.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Removes a file that is not needed.
pub(crate) fn remove(path: &PathText) {
    let _ = rustix::fs::unlink(path.as_c_str());
}

fn copy(path: &PathText) -> Result<PathText, Failure> {
    PathText::new(path).ok_or(Failure::memory("a path for the code log"))
}

/// Creates a directory that only this user can access, or checks that it is one, and not a link.
fn make_private(path: &PathText) -> Result<(), Errno> {
    match mkdir(path.as_c_str(), Mode::RWXU) {
        Ok(()) => return Ok(()),
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let found = lstat(path.as_c_str())?;
    let is_private = FileType::from_raw_mode(found.st_mode) == FileType::Directory
        && found.st_uid == geteuid().as_raw()
        && found.st_mode & 0o022 == 0;
    is_private.then_some(()).ok_or(Errno::PERM)
}

fn file_limit() -> usize {
    file_size_limit().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

fn allocate(file: BorrowedFd<'_>, at: usize, length: usize) -> Result<(), Errno> {
    match retry(|| fallocate(file, FallocateFlags::empty(), at as u64, length as u64)) {
        // Not every file system supports this, and a filter of system calls may forbid it.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            write_zeros(file, at as u64, length)
        }
        done => done,
    }
}

/// Whether a file is in ext4, ext3 or ext2.
fn is_extended(file: BorrowedFd<'_>) -> bool {
    const MAGIC: u64 = 0xef53;
    fstatfs(file).is_ok_and(|found| found.f_type as u64 == MAGIC)
}

/// [`allocate`] at the end of a file in a file system that overwrites data in place, and where this takes a third of the time:
/// ext4 puts what one call writes into a few large pages, while it gets a page for each fault in space that was only allocated.
/// Written data has its space on the disk from then on, reserved at first.
fn allocate_by_writing(file: BorrowedFd<'_>, at: usize, length: usize) -> Result<(), Errno> {
    match write_zeros(file, at as u64, length) {
        Ok(()) => Ok(()),
        // A filter of system calls may forbid it.
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => allocate(file, at, length),
        Err(error) => {
            // As if nothing had been allocated: what was written is behind the end of the log.
            let _ = retry(|| ftruncate(file, at as u64));
            Err(error)
        }
    }
}

fn write_zeros(file: BorrowedFd<'_>, mut at: u64, mut length: usize) -> Result<(), Errno> {
    const PART: usize = 4096;
    let zeros = [0; PART];
    while length > 0 {
        let parts = [IoSlice::new(&zeros); 16];
        let whole = parts.get(..length / PART).unwrap_or(&parts);
        let written = if whole.is_empty() {
            retry(|| pwrite(file, zeros.get(..length).unwrap_or(&zeros), at))?
        } else {
            retry(|| pwritev(file, whole, at))?
        };
        if written == 0 {
            return Err(Errno::NOSPC);
        }
        at += written as u64;
        length = length.saturating_sub(written);
    }
    Ok(())
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
