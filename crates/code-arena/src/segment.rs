//! A segment of an arena: one file, and the memory that it is.

use std::ops::Range;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use unwind_info::Unwind;

use crate::area::Backed;
use crate::error::Error;
use crate::file::File;
use crate::fork;
use crate::head::{self, Growing, size_at};
use crate::layout::Layout;
use crate::loaded::Loaded;
use crate::options::Options;
use crate::rooms::{Room, Rooms};
use crate::tables::Tables;
use crate::view::View;

/// The disk is asked for so much text at once.
const STEP: usize = 256 << 10;

/// A segment. It is never freed, since whoever announces code may be looking at it; what it holds is.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Where the text runs.
    text: Range<u64>,
    /// Where the file's first byte is in the executable view.
    base: u64,
    /// The process that made it.
    pid: i32,
    is_linked: bool,
    is_open: AtomicBool,
    left_out: AtomicU64,
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    // In the order in which they go.
    _loaded: Loaded,
    view: View,
    tables: Tables,
    rooms: Rooms,
    text: Backed,
    layout: Layout,
    file: File,
    is_removed: bool,
}

impl Segment {
    /// Makes the file, and maps it.
    pub(crate) fn create(options: &Options) -> Result<Self, Error> {
        let layout = Layout::new(options.segment, rustix::param::page_size());
        let file = File::create(&options.directory)?;
        let made = Self::begin(options, &layout, &file);
        if made.is_err() {
            file.remove();
        }
        let (loaded, view, tables) =
            made.map_err(|(doing, cause)| Error::new(&file.path, doing, cause))?;
        let base = loaded.base() as u64;
        let at = |place: usize| base.wrapping_add(place as u64);
        Ok(Self {
            text: at(layout.text.start)..at(layout.text.end),
            base,
            pid: fork::process_id(),
            is_linked: loaded.is_linked(),
            is_open: AtomicBool::new(true),
            left_out: AtomicU64::new(0),
            state: Mutex::new(Some(State {
                _loaded: loaded,
                view,
                tables,
                rooms: Rooms::new(layout.text.start, layout.text.end),
                text: Backed { to: layout.text.start, end: layout.text.end, step: STEP },
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
    ) -> Result<(Loaded, View, Tables), (&'static str, Errno)> {
        let mut build_id = [0; 20];
        // The machine's own: unique, which is all that is asked.
        unique(&mut build_id);
        let space = |at, size| file.back(at, size).map_err(|cause| ("take disk space", cause));
        space(0, layout.page)?;
        space(layout.dynamic, layout.page)?;
        let mut view =
            View::new(&file.fd, layout.size()).map_err(|cause| ("map the file", cause))?;
        view.write(0, &head::first_page(layout, build_id));
        view.write(layout.dynamic, &head::dynamic(layout));
        let tables = Tables::begin(layout, file, &mut view);
        let tables = tables.ok_or(("take disk space", Errno::NOSPC))?;
        let linked = options.is_linked.then(|| Loaded::link(file)).flatten();
        let loaded = match linked.filter(|linked| sees(linked, layout, file, &mut view)) {
            Some(linked) => linked,
            None => Loaded::map(file, layout).map_err(|error| {
                let code = error.raw_os_error().unwrap_or(0);
                ("map the file to be executed", Errno::from_raw_os_error(code))
            })?,
        };
        Ok((loaded, view, tables))
    }

    /// The state, unless the arena is gone or is another process's.
    fn lock(&self) -> Option<MutexGuard<'_, Option<State>>> {
        // The lock may be held by a thread that the fork left behind.
        if self.pid != fork::process_id() {
            return None;
        }
        Some(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether an address is in the text, as long as that is mapped.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.text.contains(&address) && self.is_open.load(Relaxed)
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.pid == fork::process_id()
    }

    /// Bytes of text.
    pub(crate) fn capacity(&self) -> usize {
        (self.text.end - self.text.start) as usize
    }

    /// Codes that could not be told of.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(self.lock()?.as_ref()?.file.path.clone())
    }

    /// Whether the process's own loader knows it.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// A room that nobody has, where it runs, and where it is written. Of those that were used before, if so asked.
    pub(crate) fn allocate(&self, size: usize, align: usize, used: bool) -> Option<Taken> {
        let mut state = self.lock()?;
        let state = state.as_mut()?;
        let room = if used {
            let room = state.rooms.take_used(size, align)?;
            state.tables.forget(&mut state.view, room.at, room.at.saturating_add(room.size));
            room
        } else {
            let end = state.rooms.fresh_end(size, align)?;
            let (file, view) = (&state.file, &mut state.view);
            if !state.text.reach(file, end) || !state.tables.frames.reach(file, view, end) {
                return None;
            }
            let room = state.rooms.take_fresh(size, align)?;
            let text = state.rooms.next().saturating_sub(state.layout.text.start);
            state.view.store_u64(size_at(Growing::Text), text as u64);
            room
        };
        let written = state.view.text(room.at, room.size)?;
        Some(Taken { room, address: self.base.wrapping_add(room.at as u64), written })
    }

    pub(crate) fn give_back(&self, room: Room) {
        if let Some(mut state) = self.lock()
            && let Some(state) = state.as_mut()
        {
            state.rooms.give_back(room);
        }
    }

    /// Tells of a code; false if it does not lie here.
    pub(crate) fn announce(
        &self,
        code: &code_image::Code<'_>,
        unwind: Option<&Unwind<'_>>,
    ) -> bool {
        let Some(mut state) = self.lock() else { return false };
        let Some(state) = state.as_mut() else { return false };
        let used = self.base.wrapping_add(state.rooms.next() as u64);
        let code_image::Code { start, size, ref visible, .. } = *code;
        let is_whole = visible.start < visible.end
            && start <= visible.start
            && visible.end <= start.saturating_add(size);
        if !is_whole || visible.start < self.text.start || start.saturating_add(size) > used {
            return false;
        }
        if !state.tables.add(&state.file, &mut state.view, self.base, code, unwind) {
            self.left_out.fetch_add(1, Relaxed);
        }
        true
    }

    /// Unmaps everything. Nobody has a room any more.
    pub(crate) fn close(&self) {
        // First: what is mapped there next is another's.
        self.is_open.store(false, Relaxed);
        let state = self.lock().and_then(|mut state| state.take());
        if let Some(state) = &state
            && state.is_removed
        {
            state.file.remove();
        }
    }
}

/// What was allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) room: Room,
    pub(crate) address: u64,
    pub(crate) written: NonNull<u8>,
}

/// Whether what is written is seen in the executable view, which a loader makes a private one: nothing but the
/// habit of kernels says that it is.
fn sees(loaded: &Loaded, layout: &Layout, file: &File, view: &mut View) -> bool {
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

/// Bytes that no other file has.
fn unique(bytes: &mut [u8; 20]) {
    use std::hash::{BuildHasher, RandomState};
    // Keyed by the machine's random numbers, once a thread; the rest tells segments of a process apart.
    let (pid, time) = (fork::process_id(), std::time::SystemTime::now());
    for (number, part) in (0_u8..).zip(bytes.chunks_mut(8)) {
        let hash = RandomState::new().hash_one((number, pid, time)).to_ne_bytes();
        for (byte, value) in part.iter_mut().zip(hash) {
            *byte = value;
        }
    }
}
