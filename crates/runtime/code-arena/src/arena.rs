//! The arena, from which a runtime allocates memory for its code.
#![allow(unsafe_code)]

use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use fallible::{PathText, Place, Shared, Vec};
use guest::hold_signals;

use crate::allocator::Region;
use crate::error::Error;
use crate::fork;
use crate::instructions;
use crate::layout::GRANULE;
use crate::options::Options;
use crate::registry;
use crate::segment::{Allocation, Segment};
use crate::sweep::sweep;

/// Memory for code. See the [crate's documentation](crate).
///
/// Clones refer to the same arena. It lives until the last clone and everything allocated from it are dropped. Every method may
/// be called from any thread.
#[derive(Clone, Debug)]
pub struct CodeArena(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    /// Only [`Self::with_segments`] locks it.
    segments: Mutex<Vec<&'static Segment>>,
    /// Held by the thread that creates a segment. Signals are not held: creating a segment calls the allocator and the loader,
    /// whose locks may be held by a thread that a signal has interrupted.
    growing: Mutex<()>,
    /// The process that created the arena; and the state of its latest forked child, which has its own. Signals are not held, as
    /// for `growing`.
    pid: i32,
    child: Mutex<Option<(i32, Shared<Inner>)>>,
}

/// Memory for code that is being written. The code does not run yet, but its final address is known, so calls to it and from it
/// can be generated.
#[derive(Debug)]
pub struct Draft(Owned);

/// Memory with code that may run, and cannot be written to. Dropping it frees the memory: the code must not run any more, nor be
/// on any stack.
#[derive(Debug)]
pub struct Executable(Owned);

/// A region, which is freed when this is dropped.
#[derive(Debug)]
struct Owned {
    arena: Shared<Inner>,
    segment: &'static Segment,
    region: Region,
    address: u64,
    written: NonNull<u8>,
    size: usize,
    /// The number of forks of the process when the region was allocated.
    forks: u64,
}

// SAFETY: the pointer is to memory that only this value uses, and that may be used from any thread.
unsafe impl Send for Owned {}
// SAFETY: nothing is read or written through `&self`.
unsafe impl Sync for Owned {}

impl CodeArena {
    /// Creates an arena with its first segment.
    ///
    /// # Errors
    /// The directory does not accept a file, or none that may be executed; or there is no disk space for its tables.
    pub fn create(options: Options) -> Result<Self, Error> {
        fork::forks();
        if let (Some(age), Some(directory)) = (options.sweep, &options.directory) {
            sweep(directory.as_c_str(), age);
        }
        let inner = Inner::new(options);
        inner.grow()?;
        Shared::new(inner).map(Self).map_err(|_| no_memory())
    }

    /// Allocates memory for `size` bytes of code, aligned to `align`: a power of two, at most a page. Codes are aligned to 32
    /// bytes in any case. `None` if there is no space, on the disk or within the limit.
    ///
    /// In the child of a fork, it is in segments that are not shared with the parent.
    #[must_use]
    pub fn allocate(&self, size: usize, align: usize) -> Option<Draft> {
        let inner = of_this_process(&self.0)?;
        let align = align.max(GRANULE);
        if !align.is_power_of_two() || align > rustix::param::page_size() {
            return None;
        }
        let draft = |(segment, allocation)| Draft(Owned::new(&inner, segment, allocation, size));
        if let Some(found) = inner.take(size, align) {
            return Some(draft(found));
        }
        let _growing = inner.growing.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have created a segment in the meantime.
        if let Some(found) = inner.take(size, align) {
            return Some(draft(found));
        }
        let fits = size.checked_add(align)? <= inner.segment(0)?.capacity();
        let segment = if fits { inner.grow().ok()? } else { None }?;
        let allocation = segment.allocate(size, align, false)?;
        Some(draft((segment, allocation)))
    }

    /// The paths of the files; each is a segment.
    #[must_use]
    #[allow(clippy::disallowed_types, reason = "the caller's, made in memory that was not refused")]
    pub fn paths(&self) -> std::vec::Vec<std::path::PathBuf> {
        let Some(inner) = of_this_process(&self.0) else { return std::vec::Vec::new() };
        let paths = fallible::attempt(|| {
            let paths = inner.segments().filter_map(Segment::path);
            paths.map(PathText::into_path_buf).collect::<Vec<_>>()
        });
        paths.map(Vec::into_inner).unwrap_or_default()
    }

    /// Whether the process's own loader has linked the files, so that debuggers that attach later, `dladdr`, and unwinders in
    /// the process find them.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        let Some(inner) = of_this_process(&self.0) else { return false };
        inner.segments().all(Segment::is_linked)
    }

    /// Number of announced codes that tools cannot find, because the disk was full, or the tables were. Tables get full if codes
    /// are much smaller than 128 bytes, or names much longer than 64.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let Some(inner) = of_this_process(&self.0) else { return 0 };
        inner.segments().map(Segment::left_out).sum()
    }
}

impl Inner {
    fn new(options: Options) -> Self {
        let pid = fork::process_id();
        let (segments, growing) = (Mutex::default(), Mutex::default());
        Self { options, segments, growing, pid, child: Mutex::new(None) }
    }

    /// Runs `work` on the list of segments, with signals held as for a segment's own lock: a thread that a signal interrupts
    /// does not hold the list. `work` must not allocate.
    fn with_segments<R>(&self, work: impl FnOnce(&mut Vec<&'static Segment>) -> R) -> R {
        let _signals = hold_signals();
        work(&mut self.segments.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A segment, in the order of creation.
    fn segment(&self, number: usize) -> Option<&'static Segment> {
        self.with_segments(|segments| segments.get(number).copied())
    }

    /// The segments that exist now. The list is not locked during the iteration.
    fn segments(&self) -> impl DoubleEndedIterator<Item = &'static Segment> {
        let count = self.with_segments(|segments| segments.len());
        (0..count).filter_map(|number| self.segment(number))
    }

    /// Allocates memory in one of the segments.
    fn take(&self, size: usize, align: usize) -> Option<(&'static Segment, Allocation)> {
        // The youngest first: the others are full.
        let in_any = |used| {
            let mut segments = self.segments().rev();
            segments.find_map(|segment| Some((segment, segment.allocate(size, align, used)?)))
        };
        in_any(false).or_else(|| in_any(true))
    }

    /// Adds a segment, if the limit allows it. The caller must hold `growing`, or own the whole arena.
    fn grow(&self) -> Result<Option<&'static Segment>, Error> {
        let reserved: usize = self.segments().map(Segment::capacity).sum();
        if reserved > 0 && reserved.saturating_add(self.options.segment) > self.options.limit {
            return Ok(None);
        }
        let count = self.with_segments(|segments| segments.len());
        let mut longer = Vec::new();
        longer.try_reserve(count.saturating_add(1)).map_err(|_| no_memory())?;
        let place = Place::new().map_err(|_| no_memory())?;
        let segment = registry::add(place, Segment::create(&self.options)?);
        // The capacity was reserved above.
        longer.extend(self.segments());
        longer.push(segment);
        let shorter = self.with_segments(|segments| std::mem::replace(segments, longer));
        drop(shorter);
        Ok(Some(segment))
    }
}

/// The state from which this process allocates: the child of a fork has its own.
fn of_this_process(shared: &Shared<Inner>) -> Option<Shared<Inner>> {
    let pid = fork::process_id();
    if pid == shared.pid {
        return Some(Shared::clone(shared));
    }
    let mut child = shared.child.lock().unwrap_or_else(PoisonError::into_inner);
    match &*child {
        Some((of, inner)) if *of == pid => Some(Shared::clone(inner)),
        _ => {
            let options = fallible::attempt(|| shared.options.clone()).ok()?;
            let inner = Shared::new(Inner::new(options)).ok()?;
            // A grandchild must not drop the state of its parent.
            if let Some(old) = child.replace((pid, Shared::clone(&inner))) {
                std::mem::forget(old);
            }
            // Without a first segment, nothing is ever allocated from it.
            let _ = inner.grow();
            Some(inner)
        }
    }
}

fn no_memory() -> Error {
    Error::new(Path::new(""), "keep account of it", rustix::io::Errno::NOMEM)
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.pid == fork::process_id() {
            let segments = self.segments.get_mut().unwrap_or_else(PoisonError::into_inner);
            for segment in segments.iter() {
                segment.close();
            }
        }
    }
}

impl Owned {
    fn new(
        arena: &Shared<Inner>,
        segment: &'static Segment,
        allocation: Allocation,
        size: usize,
    ) -> Self {
        let Allocation { region, address, written } = allocation;
        let forks = fork::forks();
        Self { arena: Shared::clone(arena), segment, region, address, written, size, forks }
    }

    /// Whether no other process shares this code.
    fn is_alone(&self) -> bool {
        self.segment.is_ours()
            && (self.arena.options.forks_only_to_exec || self.forks == fork::forks())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.is_alone() {
            self.segment.release(self.region);
        }
    }
}

impl Draft {
    /// The address at which the first byte will run.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// The bytes, to be written. The initial content is arbitrary.
    ///
    /// After a fork, a draft belongs to the parent: there must be none that is being written during a fork.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory is in the writable view, or in text that is writable, has disk space, and only this draft uses it. It stays as long as the
        // arena, which the draft keeps alive. It is not executed, because it is a draft. In the child of a fork, nothing may be
        // written: an empty slice.
        unsafe {
            let size = if self.0.segment.is_ours() { self.0.size } else { 0 };
            std::slice::from_raw_parts_mut(self.0.written.as_ptr(), size)
        }
    }

    /// Finishes the code.
    #[must_use = "dropping it frees the code"]
    pub fn finish(self) -> Executable {
        let written = self.0.written.as_ptr().addr() as u64;
        instructions::synchronise(self.0.address, written, self.0.size);
        Executable(self.0)
    }
}

impl Executable {
    /// The address at which its first byte runs.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// Size of the code in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// Makes the code writable again, at the same address. It must not run while it is changed.
    ///
    /// # Errors
    /// After a fork, code that is shared with another process is returned unchanged.
    pub fn edit(self) -> Result<Draft, Executable> {
        if self.0.is_alone() { Ok(Draft(self.0)) } else { Err(self) }
    }

    /// Makes the code live as long as the process.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

#[cfg(test)]
mod tests {
    use super::CodeArena;
    use crate::options::Options;

    #[test]
    fn code_is_written_where_it_runs_and_reaches_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for is_linked in [true, false] {
            let options = Options::new(folder.path()).segment(1 << 20).in_place();
            let options = if is_linked { options } else { options.unlinked() };
            let arena = CodeArena::create(options).unwrap();
            assert_eq!(arena.is_linked(), is_linked);
            let mut draft = arena.allocate(64, 32).unwrap();
            assert_eq!(draft.bytes_mut().as_ptr().addr() as u64, draft.address());
            let content = [0x5a; 64];
            draft.bytes_mut().copy_from_slice(&content);
            let code = draft.finish();
            let file = std::fs::read(&arena.paths()[0]).unwrap();
            assert!(file.windows(64).any(|bytes| bytes == content));
            // It is freed and used again as other code is.
            let address = code.address();
            drop(code);
            let again = std::iter::from_fn(|| arena.allocate(1 << 16, 32));
            assert!(again.take(64).any(|code| code.address() == address));
        }
    }

    #[test]
    fn threads_that_need_a_segment_at_once_stay_within_the_limit() {
        const SEGMENT: usize = 1 << 20;
        const CODE: usize = 64 << 10;
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path()).segment(SEGMENT).limit(3 * SEGMENT);
        let arena = CodeArena::create(options).unwrap();
        let allocate = || std::iter::from_fn(|| arena.allocate(CODE, 32)).collect::<Vec<_>>();
        let drafts = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(allocate));
            threads.map(|thread| thread.join().unwrap()).into_iter().flatten().collect::<Vec<_>>()
        });
        assert_eq!(arena.paths().len(), 3);
        let mut places: Vec<_> = drafts.iter().map(super::Draft::address).collect();
        places.sort_unstable();
        assert!(places.len() >= 3 * (SEGMENT / CODE - 1), "{}", places.len());
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= CODE as u64));
        // Freed memory is found again, in whichever segment it is.
        drop(drafts);
        assert_eq!(allocate().len(), places.len());
        assert_eq!((arena.paths().len(), arena.left_out()), (3, 0));
    }
}
