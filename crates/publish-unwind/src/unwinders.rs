//! What a runtime calls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use code_image::Code;
use unwind_info::Unwind;

use crate::entries::{Frames, entries};
use crate::found::{Found, Kind};
use crate::libunwind::{self, Libunwind};
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

/// What frames were described to whom.
#[derive(Debug)]
struct Known {
    frames: Described,
    /// What has been told all of them, beside the unwinder that takes frames.
    libunwind: Option<&'static Libunwind>,
}

#[derive(Debug)]
enum Described {
    Singles(Singles),
    Regions(Regions),
}

impl Unwinders {
    /// Looks for the unwinder of this process; `None` if it has none that takes frames.
    #[must_use]
    pub fn find() -> Option<Self> {
        let found = Found::look()?;
        let frames = match found.kind {
            Kind::OldLibgcc => Described::Regions(Regions::default()),
            Kind::Libgcc | Kind::Llvm => Described::Singles(Singles::default()),
        };
        let known = Known { frames, libunwind: None };
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
        let libunwind = libunwind::look();
        let Some(mut known) = self.lock() else { return };
        if let Some(libunwind) = libunwind.filter(|_| known.libunwind.is_none()) {
            known.begin(libunwind);
        }
        if entries.is_empty() {
            known.forget(self.found, code.start, code.start.saturating_add(code.size));
        }
        for entry in entries {
            match &mut known.frames {
                Described::Singles(singles) => singles.add(self.found, &entry),
                Described::Regions(regions) => regions.add(self.found, &entry),
            }
            if let (Some(libunwind), Some(frames)) = (known.libunwind, entry.frames()) {
                libunwind.add(frames);
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
        } else if let Some(libunwind) = self.lock().and_then(|known| known.libunwind) {
            libunwind.forked();
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
    /// Tells libunwind what there is already.
    fn begin(&mut self, libunwind: &'static Libunwind) {
        self.libunwind = Some(libunwind);
        self.frames.each(|frames| libunwind.add(frames));
    }

    fn forget(&mut self, found: Found, start: u64, end: u64) {
        match &mut self.frames {
            Described::Singles(singles) => singles.forget(start, end),
            Described::Regions(regions) => regions.forget(found, start, end),
        }
        if let Some(libunwind) = self.libunwind {
            libunwind.forget(start, end);
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some(libunwind) = self.libunwind {
            self.frames.each(|frames| libunwind.forget(frames.start, frames.end));
        }
    }
}

impl Described {
    fn each(&self, tell: impl FnMut(Frames<'_>)) {
        match self {
            Self::Singles(singles) => singles.all().for_each(tell),
            Self::Regions(regions) => regions.all().for_each(tell),
        }
    }
}
