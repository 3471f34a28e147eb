//! Holds, while perf records, the programs and libraries whose files are gone: libgccjit deletes a library as soon as it is loaded, others are in a memfd, or are
//! replaced while they run.
//!
//! They are listed by [`polling`](super::polling). A file that is gone is opened when it is first seen, or put together from what is loaded of it. A file that was
//! written after its process began, or that belongs to the user, is opened too: it may be deleted or replaced before the recording ends. At the end of the recording, those that are gone are copied to the
//! recording's images.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use super::polling::{Asked, Poll, Polling};
use super::scope::Scope;
use crate::foreign::{Limit, Patience};
use crate::note;
use crate::process::{FileBytes, GoneFiles, HeldFile, LastingFiles};

/// The most files that are held, and those of them that are not gone yet.
const FILES: usize = 256;
const NOT_GONE: usize = 128;
/// The most bytes of memory that copies take.
const COPIED: u64 = 1 << 30;

/// How long a worker may take. One that takes longer is not asked again.
const PATIENCE: Patience = Patience {
    silence: Limit::of(Duration::from_secs(2)),
    whole: Limit::of(Duration::from_secs(10)),
    bytes: 600 << 20,
    memory: 2 << 30,
    all: Limit::NEVER,
};

/// The thread that lists the files.
#[derive(Debug)]
pub struct GoneFilesReader(Polling<HeldFiles>);

impl GoneFilesReader {
    /// Begins to list the files of the processes in `scope` or, if perf starts the command, of its processes. What processes that the user named have mapped
    /// is held at once.
    pub fn start(scope: &Scope) -> Self {
        Self(Polling::start("gone", scope, HeldFiles::default(), scope.is_named()))
    }

    /// Lists the files once more, and returns those that are gone.
    pub fn finish(mut self) -> Vec<HeldFile> {
        let Some(held) = self.0.stop() else { return Vec::new() };
        if held.is_full {
            note::warning(format_args!(
                "more than {} files that recorded processes ran are gone: the rest is not kept",
                FILES - NOT_GONE
            ));
        }
        held.gone()
    }
}

/// What is held.
#[derive(Debug, Default)]
struct HeldFiles {
    files: Vec<HeldFile>,
    /// How many of them had their paths when they were opened.
    not_gone: usize,
    /// How many bytes of memory they take.
    copied: u64,
    lasting: LastingFiles,
    is_full: bool,
}

impl Poll for HeldFiles {
    type Worker = GoneFiles;

    const LONGEST: Duration = Duration::from_millis(250);
    const WITHOUT: Duration = Self::LONGEST;
    /// Others remove its files.
    const IDLE: Duration = Duration::from_secs(2);

    fn begin(&mut self, pid: u32) -> io::Result<GoneFiles> {
        GoneFiles::begin(pid, PATIENCE)
    }

    fn ask(&mut self, _pid: u32, worker: &mut GoneFiles) -> io::Result<ControlFlow<(), Asked>> {
        let polled = worker.poll(&mut self.lasting, COPIED.saturating_sub(self.copied))?;
        for file in polled.held {
            let is_known = self.files.iter().any(|known| known.is_same_as(&file));
            if is_known {
                continue;
            }
            let was_gone = file.was_gone();
            let has_room = match was_gone {
                true => self.files.len() - self.not_gone < FILES - NOT_GONE,
                false => self.not_gone < NOT_GONE,
            };
            if has_room {
                self.not_gone += usize::from(!was_gone);
                self.copied = self.copied.saturating_add(file.copied);
                self.files.push(file);
            } else {
                self.is_full |= was_gone;
            }
        }
        Ok(ControlFlow::Continue(Asked {
            has_any: polled.has_gone,
            is_whole: polled.is_whole,
            took: polled.took,
        }))
    }
}

impl HeldFiles {
    /// The files that are gone. Of several with one name and inode number in one process, it is not known which was recorded: none of them is used.
    fn gone(self) -> Vec<HeldFile> {
        let mut gone: Vec<HeldFile> = self.files.into_iter().filter(HeldFile::is_gone).collect();
        let mut places = HashMap::new();
        for file in &gone {
            let (name, inode) = file.place();
            *places.entry((file.pid, name.to_vec(), inode)).or_insert(0_u32) += 1;
        }
        for file in &mut gone {
            let (name, inode) = file.place();
            if places.get(&(file.pid, name.to_vec(), inode)).is_some_and(|count| *count > 1) {
                file.bytes = FileBytes::Unreadable;
            }
        }
        // Memory that a JIT compiler writes its code into has such a name, too.
        gone.retain(|file| {
            !matches!(file.bytes, FileBytes::Unreadable) || !file.name().starts_with(b"/memfd:")
        });
        gone
    }
}
