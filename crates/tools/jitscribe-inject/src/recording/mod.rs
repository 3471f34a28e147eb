//! Opening and indexing a recording: its processes, their mappings, and its clock.
//!
//! In comes the path of a recording of perf, or an open one. The first reading collects forks, execs, mappings and the clock
//! ([`recording_index`]), from which the mappings of each process at any time follow ([`address_space`]).
//!
//! Out goes a [`Recording`]: the open input, which later steps read again, with the results of the first reading. They are never
//! changed.

pub mod address_space;
pub mod clock;
pub mod free;
pub mod kept_files;
pub mod recording_index;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use perf_data::{End, Input, feature};

use crate::files::ReplacedFiles;
use crate::progress::{Progress, Stage};
use crate::{Error, Result, Warning};
use address_space::AddressSpaces;
use kept_files::KeptFiles;
use recording_index::RecordingIndex;

/// A recording, with its processes and their mappings.
#[derive(Debug)]
pub struct Recording {
    pub(crate) path: PathBuf,
    pub(crate) input: Input,
    pub(crate) index: RecordingIndex,
    pub(crate) spaces: AddressSpaces,
    pub(crate) replaced: ReplacedFiles,
}

impl Recording {
    /// Opens the recording `path` (a file, a directory of `perf record --threads`, or `-` for standard input) and reads
    /// it from its beginning to its end.
    ///
    /// # Errors
    /// If it cannot be read, or is not a recording. If it is damaged or cut off, the part before is used: see
    /// [`Self::warning`].
    pub fn open(path: &Path, progress: &dyn Fn(Progress)) -> Result<Self> {
        Self::read(path, Self::input(path)?, progress)
    }

    /// Opens a recording, and reads only its header.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn input(path: &Path) -> Result<Input> {
        Input::open(path).map_err(Error::reading(path))
    }

    /// Reads an open recording. `path` is used in messages.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path, input: Input, progress: &dyn Fn(Progress)) -> Result<Self> {
        Self::read_with(path, input, &KeptFiles::default(), progress)
    }

    /// The same. Of the files that it maps, those that are `kept` elsewhere are looked for there; what the [`Injector`](crate::Injector) writes maps them
    /// from there.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn read_with(
        path: &Path,
        mut input: Input,
        kept: &KeptFiles,
        progress: &dyn Fn(Progress),
    ) -> Result<Self> {
        progress(Progress::Begins(Stage::Reading));
        let index = RecordingIndex::read(&mut input, kept, |at| progress(Progress::At(at)));
        let index = index.map_err(Error::reading(path))?;
        let spaces = AddressSpaces::build(&index);
        let inodes = || index.file_inodes().map(|(name, inode)| (index.names.get(name), inode));
        let is_here = is_of_this_machine(&input) && has_files_of_this_system(inodes());
        let until = is_here.then(|| ended(path, &input, &index)).flatten();
        let replaced = ReplacedFiles::new(inodes(), until);
        Ok(Self { path: path.to_owned(), input, index, spaces, replaced })
    }

    /// Which files are others than the recorded ones.
    #[must_use]
    pub fn replaced_files(&self) -> &ReplacedFiles {
        &self.replaced
    }

    /// The path for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.index.events
    }

    /// The warning if its end is missing or damaged.
    #[must_use]
    pub fn warning(&self) -> Option<Warning> {
        let (path, events) = (self.path.clone(), self.index.events);
        match self.input.end() {
            End::CutOff { offset, .. } => Some(Warning::RecordingCutOff { path, offset, events }),
            End::Damaged { offset, cause, .. } => {
                Some(Warning::RecordingDamaged { path, cause, offset, events })
            }
            _ => None,
        }
    }

    /// Whether it was made on this machine, according to the host name. True if it has no host name.
    #[must_use]
    pub fn is_of_this_machine(&self) -> bool {
        is_of_this_machine(&self.input)
    }
}

fn is_of_this_machine(input: &Input) -> bool {
    let system = rustix::system::uname();
    // A length, and the name with a NUL.
    let recorded = input.features().get(feature::HOSTNAME);
    let recorded = recorded.and_then(|bytes| bytes.get(4..));
    recorded.is_none_or(|name| {
        name.split(|&byte| byte == 0).next() == Some(system.nodename().to_bytes())
    })
}

/// Whether most of the system's files, which only root can change, have the recorded inode numbers: machines may share a host name.
fn has_files_of_this_system<'p>(files: impl Iterator<Item = (&'p [u8], u64)>) -> bool {
    const FOLDERS: [&[u8]; 4] = [b"/usr/lib/", b"/usr/bin/", b"/lib/", b"/bin/"];
    let files: HashMap<&[u8], u64> =
        files.filter(|(path, _)| FOLDERS.iter().any(|folder| path.starts_with(folder))).collect();
    let (mut same, mut other) = (0_usize, 0_usize);
    for (path, inode) in files {
        if let Ok(file) = fs::metadata(OsStr::from_bytes(path)) {
            *(if file.ino() == inode { &mut same } else { &mut other }) += 1;
        }
    }
    same > other
}

/// When a recording ended, by the wall clock: as it says itself, or as its file was last changed.
fn ended(path: &Path, input: &Input, index: &RecordingIndex) -> Option<SystemTime> {
    let noted = input.features().clock_data(input.endian()).and_then(|begin| {
        let took = index.last_sample.checked_sub(begin.time)?;
        UNIX_EPOCH.checked_add(Duration::from_nanos(begin.wall_clock.checked_add(took)?))
    });
    let file = || fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok();
    noted.or_else(file)
}
