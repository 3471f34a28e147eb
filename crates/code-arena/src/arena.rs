//! The arena: what a runtime allocates its code from.
#![allow(unsafe_code)]

use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::fork;
use crate::instructions;
use crate::layout::GRANULE;
use crate::options::Options;
use crate::registry;
use crate::rooms::Room;
use crate::segment::{Segment, Taken};
use crate::sweep::sweep;

/// Memory for code. See the [crate's documentation](crate).
///
/// Copies are the same arena. It lives until the last of them, and all that was allocated from it, are dropped.
/// Every method may be called from any thread.
#[derive(Clone, Debug)]
pub struct CodeArena(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    made: Mutex<Made>,
    /// The process that made it, and a child of its that was forked since, and has a state of its own.
    pid: i32,
    child: Mutex<Option<(i32, Arc<Inner>)>>,
}

#[derive(Debug, Default)]
struct Made {
    segments: Vec<&'static Segment>,
}

/// Room for code that is being written. It does not run yet; but where it will is known, so that calls can be made to it
/// and from it.
#[derive(Debug)]
pub struct Draft(Owned);

/// Room with code that may run, and may not be written to. Dropping it frees the room: the code must not run any more,
/// nor be on any stack.
#[derive(Debug)]
pub struct Executable(Owned);

/// A room, which is given back when it is dropped.
#[derive(Debug)]
struct Owned {
    arena: Arc<Inner>,
    segment: &'static Segment,
    room: Room,
    address: u64,
    written: NonNull<u8>,
    size: usize,
    /// How often the process had been forked when the room was taken.
    forks: u64,
}

// SAFETY: the pointer is to memory that this value alone has, and may be used from any thread.
unsafe impl Send for Owned {}
// SAFETY: through `&self` nothing is read or written.
unsafe impl Sync for Owned {}

impl CodeArena {
    /// Makes an arena, with its first segment.
    ///
    /// # Errors
    /// The directory takes no file, or none that may be executed; there is no disk space for its tables.
    pub fn create(options: Options) -> Result<Self, Error> {
        fork::forks();
        if let Some(age) = options.sweep {
            sweep(&options.directory, age);
        }
        let inner = Inner::new(options);
        inner.grow(&mut inner.lock())?;
        Ok(Self(Arc::new(inner)))
    }

    /// Room for `size` bytes of code, the first of which lies at a multiple of `align`: a power of two, of a page at most;
    /// codes lie at multiples of 32 in any case. `None` if there is no room, on the disk or within the limit.
    ///
    /// In the child of a fork, room is in segments that it does not share with its parent.
    #[must_use]
    pub fn allocate(&self, size: usize, align: usize) -> Option<Draft> {
        let inner = self.0.of_this_process();
        let align = align.max(GRANULE);
        if !align.is_power_of_two() || align > rustix::param::page_size() {
            return None;
        }
        let mut made = inner.lock();
        for used in [false, true] {
            // The youngest first: the others are full.
            let segments = made.segments.iter().rev();
            let found = segments
                .copied()
                .find_map(|segment| Some((segment, segment.allocate(size, align, used)?)));
            if let Some((segment, taken)) = found {
                return Some(Draft(Owned::new(&inner, segment, taken, size)));
            }
        }
        let fits = size.checked_add(align)? <= made.segments.first()?.capacity();
        let segment = if fits { inner.grow(&mut made).ok()? } else { None }?;
        let taken = segment.allocate(size, align, false)?;
        Some(Draft(Owned::new(&inner, segment, taken, size)))
    }

    /// The files, of which each is a segment.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let inner = self.0.of_this_process();
        let made = inner.lock();
        made.segments.iter().filter_map(|segment| segment.path()).collect()
    }

    /// Whether the process's own loader has linked the files: then debuggers that attach later, `dladdr`, and
    /// unwinders in the process find them.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        let inner = self.0.of_this_process();
        let made = inner.lock();
        made.segments.iter().all(|segment| segment.is_linked())
    }

    /// How many codes were announced of which tools know nothing: the disk was full, or the tables were, which happens
    /// where codes are far smaller than 128 bytes or names far longer than 64.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let inner = self.0.of_this_process();
        let made = inner.lock();
        made.segments.iter().map(|segment| segment.left_out()).sum()
    }
}

impl Inner {
    fn new(options: Options) -> Self {
        let pid = fork::process_id();
        Self { options, made: Mutex::default(), pid, child: Mutex::new(None) }
    }

    /// What this process allocates from: a fork's child has its own.
    fn of_this_process(self: &Arc<Self>) -> Arc<Self> {
        let pid = fork::process_id();
        if pid == self.pid {
            return Arc::clone(self);
        }
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        match &*child {
            Some((of, inner)) if *of == pid => Arc::clone(inner),
            _ => {
                let inner = Arc::new(Self::new(self.options.clone()));
                // A grandchild must not end what is its parent's.
                if let Some(old) = child.replace((pid, Arc::clone(&inner))) {
                    std::mem::forget(old);
                }
                // Without a first segment nothing is ever allocated from it.
                let _ = inner.grow(&mut inner.lock());
                inner
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more segment, if the limit allows it.
    fn grow(&self, made: &mut Made) -> Result<Option<&'static Segment>, Error> {
        let taken: usize = made.segments.iter().map(|segment| segment.capacity()).sum();
        if !made.segments.is_empty()
            && taken.saturating_add(self.options.segment) > self.options.limit
        {
            return Ok(None);
        }
        let segment = registry::add(Segment::create(&self.options)?);
        made.segments.push(segment);
        Ok(Some(segment))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.pid == fork::process_id() {
            let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
            for segment in &made.segments {
                segment.close();
            }
        }
    }
}

impl Owned {
    fn new(arena: &Arc<Inner>, segment: &'static Segment, taken: Taken, size: usize) -> Self {
        let Taken { room, address, written } = taken;
        let forks = fork::forks();
        Self { arena: Arc::clone(arena), segment, room, address, written, size, forks }
    }

    /// Whether no other process has this code.
    fn is_alone(&self) -> bool {
        self.segment.is_ours()
            && (self.arena.options.forks_only_to_exec || self.forks == fork::forks())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.is_alone() {
            self.segment.give_back(self.room);
        }
    }
}

impl Draft {
    /// Where the first byte will run.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// The bytes, to be written. What was there before is whatever other code left.
    ///
    /// A fork makes the draft the parent's: there must be none while something is written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the room lies in the writable view, has disk space, and is this draft's alone; it stays as long as
        // the arena, which is kept by the draft. Nobody runs it: it is a draft. In a fork's child there is nothing to
        // be written: an empty slice.
        unsafe {
            let size = if self.0.segment.is_ours() { self.0.size } else { 0 };
            std::slice::from_raw_parts_mut(self.0.written.as_ptr(), size)
        }
    }

    /// The code is complete.
    #[must_use = "dropping it frees the code"]
    pub fn finish(self) -> Executable {
        let written = self.0.written.as_ptr().addr() as u64;
        instructions::synchronise(self.0.address, written, self.0.size);
        Executable(self.0)
    }
}

impl Executable {
    /// Where its first byte runs.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// Bytes of code.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// To change the code, where it stands: it must not run meanwhile. The code itself, if it is shared with another
    /// process, after a fork.
    ///
    /// # Errors
    /// The code is shared: it stays as it is.
    pub fn edit(self) -> Result<Draft, Executable> {
        if self.0.is_alone() { Ok(Draft(self.0)) } else { Err(self) }
    }

    /// The code lives as long as the process.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}
