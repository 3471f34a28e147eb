//! Values that each thread caches.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Counts forks: ids that were cached before the last fork are the parent's.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The last child of a fork that called [`forget_ids`], and the id that its thread had in the parent.
static FORKED: AtomicU64 = AtomicU64::new(0);

/// One variable for both: accessing it may be a function call in a shared library.
struct ThreadState {
    /// The generation, and the id in it.
    id: Cell<(u32, u32)>,
    lane: Cell<u32>,
}

thread_local! {
    static THREAD: ThreadState = const { ThreadState { id: Cell::new((0, 0)), lane: Cell::new(0) } };
}

/// The kernel's id of this thread.
#[inline]
pub(crate) fn id() -> u32 {
    let generation = GENERATION.load(Relaxed);
    // A thread that is ending may have no thread-local memory any more.
    THREAD
        .try_with(|state| match state.id.get() {
            (of, id) if of == generation => id,
            _ => cache_id(state, generation),
        })
        .unwrap_or_else(|_| query_id())
}

#[cold]
#[inline(never)]
fn cache_id(state: &ThreadState, generation: u32) -> u32 {
    let id = query_id();
    state.id.set((generation, id));
    id
}

#[cold]
fn query_id() -> u32 {
    crate::system::thread_id()
}

/// Called in the child `pid` of a fork, by each scribe. Returns this thread's id in the parent.
pub(crate) fn forget_ids(pid: u32) -> u32 {
    let first = u64::from(pid) << 32 | u64::from(id());
    GENERATION.fetch_add(1, Relaxed);
    let mut state = FORKED.load(Relaxed);
    if state >> 32 != u64::from(pid) {
        state = FORKED
            .compare_exchange(state, first, Relaxed, Relaxed)
            .map_or_else(|now| now, |_| first);
    }
    state as u32
}

/// The lane that this thread used last.
#[inline]
pub(crate) fn lane() -> usize {
    THREAD.try_with(|state| state.lane.get()).unwrap_or(0) as usize
}

/// Sets [`lane`].
pub(crate) fn set_lane(lane: usize) {
    let _ = THREAD.try_with(|state| state.lane.set(lane as u32));
}
