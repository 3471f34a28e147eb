//! What a runtime calls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use code_image::Code;
use unwind_info::Unwind;

use crate::entries::entries;
use crate::found::{Found, Kind};
use crate::regions::Regions;
use crate::singles::Singles;

/// What unwinders of this process know of its jitted code. See the [crate's documentation](crate).
///
/// Every method may be called from any thread, but from a signal handler. None fails: what cannot be described is
/// left out.
#[derive(Debug)]
pub struct Unwinders {
    found: Found,
    known: Mutex<Known>,
    /// What is known was in the hands of a thread that a fork left behind: it is not touched again.
    is_lost: AtomicBool,
}

#[derive(Debug)]
enum Known {
    Singles(Singles),
    Regions(Regions),
}

impl Unwinders {
    /// Looks for the unwinder of this process; `None` if it has none that takes frames.
    #[must_use]
    pub fn find() -> Option<Self> {
        let found = Found::look()?;
        let known = match found.kind {
            Kind::OldLibgcc => Known::Regions(Regions::default()),
            Kind::Libgcc | Kind::Llvm => Known::Singles(Singles::default()),
        };
        Some(Self { found, known: Mutex::new(known), is_lost: AtomicBool::new(false) })
    }

    /// Which unwinder it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.found.kind
    }

    /// New code, which must not run before this returns; what was known of code in its place is forgotten. Its frames
    /// are described by `unwind`, or else by the ready section in `code.unwind`; code without either is passed over.
    pub fn load(&self, code: &Code<'_>, unwind: Option<&Unwind<'_>>) {
        let entries = entries(code, unwind);
        let Some(mut known) = self.lock() else { return };
        if entries.is_empty() {
            known.forget(self.found, code.start, code.start.saturating_add(code.size));
        }
        for entry in entries {
            match &mut *known {
                Known::Singles(singles) => singles.add(self.found, &entry),
                Known::Regions(regions) => regions.add(self.found, &entry),
            }
        }
    }

    /// The code that begins at `address` and has `size` bytes runs no more, nor is it on any stack.
    pub fn unload(&self, address: u64, size: u64) {
        if let Some(mut known) = self.lock() {
            known.forget(self.found, address, address.saturating_add(size));
        }
    }

    /// To be called in the child of a fork, by its one thread, before anything else is. What the parent's unwinders
    /// knew the child's know, too. If another thread was in a method of this value at that moment, it is left as it is
    /// for ever.
    pub fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.known.try_lock() {
            self.is_lost.store(true, Relaxed);
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Known>> {
        if self.is_lost.load(Relaxed) {
            return None;
        }
        Some(self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn forget(&mut self, found: Found, start: u64, end: u64) {
        match self {
            Self::Singles(singles) => singles.forget(start, end),
            Self::Regions(regions) => regions.forget(found, start, end),
        }
    }
}
