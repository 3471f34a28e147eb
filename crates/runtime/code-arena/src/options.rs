//! Settings of an arena.

use std::path::Path;
use std::time::Duration;

use fallible::PathText;

/// Default for the bytes of text in a segment.
const SEGMENT: usize = 16 << 20;
/// Default for the bytes of text in all segments.
const LIMIT: usize = 1 << 30;

/// Settings of an arena.
#[derive(Clone, Debug)]
pub struct Options {
    /// `None`: not set.
    pub(crate) directory: Option<PathText>,
    /// Whether the allocation for it failed.
    pub(crate) is_refused: bool,
    pub(crate) segment: usize,
    pub(crate) limit: usize,
    pub(crate) is_removed: bool,
    pub(crate) forks_only_to_exec: bool,
    pub(crate) is_linked: bool,
    pub(crate) is_in_place: bool,
    pub(crate) sweep: Option<Duration>,
}

impl Options {
    /// The files go to `directory`. It must exist, be writable only by this user, and be on a file system that allows files to be
    /// executed. The files are called `code-PID-NUMBER.so`.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        let new = Self {
            directory: None,
            is_refused: false,
            segment: SEGMENT,
            limit: LIMIT,
            is_removed: false,
            forks_only_to_exec: false,
            is_linked: true,
            is_in_place: false,
            sweep: None,
        };
        new.directory(directory)
    }

    /// Replaces the directory.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref();
        self.directory = PathText::new(directory).filter(|_| !directory.as_os_str().is_empty());
        self.is_refused = self.directory.is_none() && !directory.as_os_str().is_empty();
        self
    }

    /// Whether a directory was set.
    #[must_use]
    pub fn has_directory(&self) -> bool {
        self.directory.is_some() || self.is_refused
    }

    /// Bytes of text in one file, and so next to each other in memory: 16 MiB by default, at least 64 KiB and at most 256 MiB. No
    /// code can be larger. The next segment may be anywhere in memory: code that jumps to other code with 32-bit displacements
    /// should be in the same segment.
    ///
    /// A segment reserves four times as much address space. It takes memory and disk space only for what is used.
    #[must_use]
    pub fn segment(mut self, bytes: usize) -> Self {
        self.segment = bytes;
        self
    }

    /// Bytes of text in all segments: 1 GiB by default.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Removes the files when the arena and everything allocated from it are dropped. By default they stay, because readers of
    /// a recording of the process need them for symbol names.
    #[must_use]
    pub fn removed(mut self) -> Self {
        self.is_removed = true;
        self
    }

    /// When the arena is created, removes files of other arenas from the directory that no process has open any more and that
    /// were not written to for `age`, which is at least a minute. Files of other users, and files with other names, stay.
    ///
    /// This is off by default: recordings and core files refer to these files by their names, and their readers look up function
    /// names there, long after the process has ended. So set `age` to the time for which recordings are kept.
    #[must_use]
    pub fn sweep(mut self, age: Duration) -> Self {
        self.sweep = Some(age);
        self
    }

    /// Every fork of this process is followed by an `exec`: code allocated before the fork may still be changed and freed after
    /// it.
    ///
    /// Without this, code from before a fork belongs to both processes for ever: neither writes to it, and its space is not
    /// reused. The child gets segments of its own. (`posix_spawn`, `system` and `vfork` do not count as forks.)
    #[must_use]
    pub fn forks_only_to_exec(mut self) -> Self {
        self.forks_only_to_exec = true;
        self
    }

    /// Code is written where it runs: for compilers that compute addresses from where they write, or that change code in place while
    /// it runs. By default, code is written through another mapping, so that no memory is writable and executable at once; systems
    /// that forbid such memory (`PR_SET_MDWE`, SELinux's `execmem`) make an arena with this option fail.
    ///
    /// It implies [`Self::forks_only_to_exec`]: the child of a fork shares the memory, and what it writes there changes the
    /// parent's code.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.is_in_place = true;
        self.forks_only_to_exec()
    }

    /// Maps the files without linking them: debuggers, `dladdr` and unwinders in the process do not see them; perf does.
    #[must_use]
    pub fn unlinked(mut self) -> Self {
        self.is_linked = false;
        self
    }
}
