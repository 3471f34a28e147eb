//! A segment of an arena: one file, and its memory.

use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fallible::PathText;
use guest::{SignalsHeld, hold_signals};
use jit_code::Code;
use rustix::io::Errno;

use crate::allocator::{Region, TextAllocator};
use crate::area::DiskSpace;
use crate::error::Error;
use crate::file::File;
use crate::fork;
use crate::head::{self, GrowingSection, size_at};
use crate::layout::Layout;
use crate::loaded::LoadedObject;
use crate::options::Options;
use crate::tables::Tables;
use crate::view::View;

/// Disk space for text is allocated in steps of this size.
const STEP: usize = 256 << 10;

/// A segment. It is never freed, because another thread may be announcing code in it; its content is freed.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The addresses at which the text runs.
    text: Range<u64>,
    /// The address of the file's first byte in the executable mapping.
    base: u64,
    /// The process that created it.
    pid: i32,
    is_linked: bool,
    is_in_place: bool,
    is_open: AtomicBool,
    left_out: AtomicU64,
    state: Mutex<Option<State>>,
}

/// The state, locked by a thread.
#[derive(Debug)]
struct Locked<'s> {
    // Dropped first: the lock is released before signals are enabled again.
    state: MutexGuard<'s, Option<State>>,
    _signals: SignalsHeld,
}

impl Deref for Locked<'_> {
    type Target = Option<State>;

    fn deref(&self) -> &Option<State> {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Option<State> {
        &mut self.state
    }
}

#[derive(Debug)]
struct State {
    // In the order in which they are dropped.
    _loaded: LoadedObject,
    view: View,
    tables: Tables,
    allocator: TextAllocator,
    text: DiskSpace,
    layout: Layout,
    file: File,
    is_removed: bool,
}

impl Segment {
    /// Creates the file, and maps it.
    pub(crate) fn create(options: &Options) -> Result<Self, Error> {
        let layout = Layout::new(options.segment, rustix::param::page_size());
        let file = File::create(options)?;
        let made = Self::begin(options, &layout, &file);
        if made.is_err() {
            file.remove();
        }
        let (loaded, view, tables) =
            made.map_err(|(doing, cause)| Error::new(file.path.as_path(), doing, cause))?;
        let base = loaded.base() as u64;
        let at = |place: usize| base.wrapping_add(place as u64);
        Ok(Self {
            text: at(layout.text.start)..at(layout.text.end),
            base,
            pid: fork::process_id(),
            is_linked: loaded.is_linked(),
            is_in_place: options.is_in_place,
            is_open: AtomicBool::new(true),
            left_out: AtomicU64::new(0),
            state: Mutex::new(Some(State {
                _loaded: loaded,
                view,
                tables,
                allocator: TextAllocator::new(layout.text.start, layout.text.end),
                text: DiskSpace { to: layout.text.start, end: layout.text.end, step: STEP },
                layout,
                file,
                is_removed: options.is_removed,
            })),
        })
    }

    fn begin(
        options: &Options,
        layout: &Layout,
        file: &File,
    ) -> Result<(LoadedObject, View, Tables), (&'static str, Errno)> {
        let mut build_id = [0; 20];
        // Need not depend on the content, only be unique.
        unique(&mut build_id);
        let space = |at, size| file.back(at, size).map_err(|cause| ("take disk space", cause));
        space(0, layout.page)?;
        space(layout.dynamic, layout.page)?;
        let mut view = file
            .fd()
            .and_then(|file| View::new(file, layout.size()))
            .map_err(|cause| ("map the file", cause))?;
        let head =
            fallible::attempt(|| (head::first_page(layout, build_id), head::dynamic(layout)));
        let (first_page, dynamic) = head.map_err(|_| ("write the file's head", Errno::NOMEM))?;
        view.write(0, &first_page);
        view.write(layout.dynamic, &dynamic);
        let tables = Tables::begin(layout, file, &mut view);
        let tables = tables.ok_or(("take disk space", Errno::NOSPC))?;
        let linked = options.is_linked.then(|| LoadedObject::link(file)).flatten();
        let loaded = match linked.filter(|linked| sees(linked, layout, file, &mut view)) {
            Some(linked) => linked,
            None => LoadedObject::map(file, layout).map_err(|error| {
                let code = error.raw_os_error().unwrap_or(0);
                ("map the file to be executed", Errno::from_raw_os_error(code))
            })?,
        };
        if options.is_in_place {
            loaded
                .make_writable(file, layout)
                .map_err(|cause| ("map the file to be written and executed", cause))?;
        }
        Ok((loaded, view, tables))
    }

    /// The state, unless the arena is closed or belongs to another process.
    ///
    /// Signals are held as long as the lock is: a handler may announce code in this segment.
    fn lock(&self) -> Option<Locked<'_>> {
        // A thread that does not exist after the fork may hold the lock.
        if self.pid != fork::process_id() {
            return None;
        }
        let signals = hold_signals();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Locked { state, _signals: signals })
    }

    /// Whether an address is in the text, while that is mapped.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.text.contains(&address) && self.is_open.load(Relaxed)
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.pid == fork::process_id()
    }

    /// Size of the text in bytes.
    pub(crate) fn capacity(&self) -> usize {
        (self.text.end - self.text.start) as usize
    }

    /// Number of codes that could not be added.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    pub(crate) fn path(&self) -> Option<PathText> {
        PathText::new(&self.lock()?.as_ref()?.file.path)
    }

    /// Whether the process's own loader has linked it.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Allocates a region, with its addresses for running and for writing. If `used`, one that was used before.
    pub(crate) fn allocate(&self, size: usize, align: usize, used: bool) -> Option<Allocation> {
        let mut state = self.lock()?;
        let state = state.as_mut()?;
        let region = if used {
            let region = state.allocator.allocate_freed(size, align)?;
            state.tables.forget(&mut state.view, region.at, region.at.saturating_add(region.size));
            region
        } else {
            let end = state.allocator.fresh_end(size, align)?;
            let (file, view) = (&state.file, &mut state.view);
            if !state.text.reserve_to(file, end) || !state.tables.frames.reserve_to(file, view, end)
            {
                return None;
            }
            let region = state.allocator.allocate_fresh(size, align)?;
            let text = state.allocator.next().saturating_sub(state.layout.text.start);
            state.view.store_u64(size_at(GrowingSection::Text), text as u64);
            region
        };
        let address = self.base.wrapping_add(region.at as u64);
        let written = if self.is_in_place {
            NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))?
        } else {
            state.view.text(region.at, region.size)?
        };
        Some(Allocation { region, address, written })
    }

    pub(crate) fn release(&self, region: Region) {
        if let Some(mut state) = self.lock()
            && let Some(state) = state.as_mut()
        {
            state.allocator.release(region);
        }
    }

    /// Announces a code; false if it is not in this segment.
    pub(crate) fn announce(&self, code: &Code<'_>) -> bool {
        let Some(mut state) = self.lock() else { return false };
        let Some(state) = state.as_mut() else { return false };
        let used = self.base.wrapping_add(state.allocator.next() as u64);
        let Code { address, size, .. } = *code;
        if size == 0 || address < self.text.start || address.saturating_add(size) > used {
            return false;
        }
        let entries =
            fallible::attempt(|| state.tables.add(&state.file, &mut state.view, self.base, code));
        if entries != Ok(true) {
            self.left_out.fetch_add(1, Relaxed);
        }
        true
    }

    /// Unmaps everything. No region is in use any more.
    pub(crate) fn close(&self) {
        // First: what is mapped there later belongs to someone else.
        self.is_open.store(false, Relaxed);
        let state = self.lock().and_then(|mut state| state.take());
        if let Some(state) = &state
            && state.is_removed
        {
            state.file.remove();
        }
    }
}

/// An allocated region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) region: Region,
    pub(crate) address: u64,
    pub(crate) written: NonNull<u8>,
}

/// Whether written data is visible in the executable mapping, which a loader makes private: that it is visible
/// is not specified, but what kernels do.
fn sees(loaded: &LoadedObject, layout: &Layout, file: &File, view: &mut View) -> bool {
    let at = layout.text.start;
    if file.back(at, 1).is_err() {
        return false;
    }
    [0x55, 0].into_iter().all(|byte| {
        view.write(at, &[byte]);
        // SAFETY: the first byte of the text is mapped, and has disk space.
        #[allow(unsafe_code)]
        let seen = unsafe { loaded.byte(at) };
        seen == byte
    })
}

/// Generates bytes that no other file has.
fn unique(bytes: &mut [u8; 20]) {
    use std::hash::{BuildHasher, RandomState};
    // Keyed by the system's random numbers, once per thread; the rest distinguishes the segments of a process.
    let (pid, time) = (fork::process_id(), std::time::SystemTime::now());
    for (number, part) in (0_u8..).zip(bytes.chunks_mut(8)) {
        let hash = RandomState::new().hash_one((number, pid, time)).to_ne_bytes();
        for (byte, value) in part.iter_mut().zip(hash) {
            *byte = value;
        }
    }
}
