//! What each thread remembers.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts forks: what a thread remembers of its ids from before one is of the parent.
static GENERATION: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static ID: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    static LANE: Cell<usize> = const { Cell::new(0) };
}

/// The kernel's id of this thread.
pub(crate) fn id() -> u32 {
    let generation = GENERATION.load(Relaxed);
    // A thread that is ending may have no thread-local memory any more.
    ID.try_with(|known| match known.get() {
        (of, id) if of == generation => id,
        _ => {
            let id = ask();
            known.set((generation, id));
            id
        }
    })
    .unwrap_or_else(|_| ask())
}

fn ask() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// This process is the child of a fork.
pub(crate) fn forget_ids() {
    GENERATION.fetch_add(1, Relaxed);
}

/// The lane in which this thread wrote last.
pub(crate) fn lane() -> usize {
    LANE.try_with(Cell::get).unwrap_or(0)
}

/// Remembers [`lane`].
pub(crate) fn set_lane(lane: usize) {
    let _ = LANE.try_with(|known| known.set(lane));
}
