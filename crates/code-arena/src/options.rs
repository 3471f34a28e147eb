//! What can be chosen.

use std::path::PathBuf;
use std::time::Duration;

/// Bytes of text in a segment, unless chosen.
const SEGMENT: usize = 16 << 20;
/// Bytes of text in all segments, unless chosen.
const LIMIT: usize = 1 << 30;

/// Settings of an arena.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) directory: PathBuf,
    pub(crate) segment: usize,
    pub(crate) limit: usize,
    pub(crate) is_removed: bool,
    pub(crate) forks_only_to_exec: bool,
    pub(crate) is_linked: bool,
    pub(crate) sweep: Option<Duration>,
}

impl Options {
    /// The files go to `directory`, which must be there, must be one to which only this user can write, and must lie on a
    /// file system whose files may be executed. Their names are `code-PID-NUMBER.so`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            segment: SEGMENT,
            limit: LIMIT,
            is_removed: false,
            forks_only_to_exec: false,
            is_linked: true,
            sweep: None,
        }
    }

    /// Another directory than the one given before.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Whether any directory was given.
    #[must_use]
    pub fn has_directory(&self) -> bool {
        !self.directory.as_os_str().is_empty()
    }

    /// Bytes of text that lie in one file, and so side by side: 16 MiB unless set, 64 KiB at least and 256 MiB at most.
    /// No code is larger. The next segment may lie anywhere: code that jumps to other code by a distance of 32 bits
    /// should be within one.
    ///
    /// Address space is taken for four times as many; memory and disk, for what is used.
    #[must_use]
    pub fn segment(mut self, bytes: usize) -> Self {
        self.segment = bytes;
        self
    }

    /// Bytes of text in all segments: 1 GiB unless set.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// The files are removed when the arena and all that was allocated from it are dropped. Otherwise they stay, for
    /// who reads a recording of the process looks names up in them.
    #[must_use]
    pub fn removed(mut self) -> Self {
        self.is_removed = true;
        self
    }

    /// When the arena is made, files of other arenas are removed from the directory that no process has any more and that were not
    /// written to for `age`; a minute at least. Files of other users and other names stay.
    ///
    /// Not done unless asked for: recordings and core files tell of the files by their names, and their readers look for
    /// names of functions there, long after the process has ended. So `age` is how long recordings are wanted.
    #[must_use]
    pub fn sweep(mut self, age: Duration) -> Self {
        self.sweep = Some(age);
        self
    }

    /// Every fork of this process ends in an `exec`: what was allocated before it may still be changed and freed after it.
    ///
    /// Without this, code from before a fork belongs to both processes for ever: neither writes to it, and its room is
    /// not used again. The child gets segments of its own. (`posix_spawn`, `system` and `vfork` are no forks in this
    /// sense.)
    #[must_use]
    pub fn forks_only_to_exec(mut self) -> Self {
        self.forks_only_to_exec = true;
        self
    }

    /// The files are mapped, and not linked by the process's own loader: debuggers, `dladdr` and unwinders in the process do not
    /// see them; perf does.
    #[must_use]
    pub fn unlinked(mut self) -> Self {
        self.is_linked = false;
        self
    }
}
