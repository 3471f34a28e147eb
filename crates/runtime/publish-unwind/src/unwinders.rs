//! The publisher, which a runtime calls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use fallible::Refused;
use jit_code::Code;

use crate::entries::{Entry, Frames, entries};
use crate::found::{Found, Kind};
use crate::libunwind::{self, Libunwind};
use crate::regions::Regions;
use crate::singles::Singles;

/// The registrations of jitted code with the unwinders in the process. See the [crate's documentation](crate).
///
/// Every method may be called from any thread, except from signal handlers. None fails: code that cannot be described is left
/// out.
#[derive(Debug)]
pub struct Unwinders {
    found: Found,
    known: Mutex<Known>,
    /// Whether a fork left the state with a thread that does not exist in this process: it is not touched again.
    is_lost: AtomicBool,
    /// Whether an allocation failed: nothing is registered any more.
    is_off: AtomicBool,
    /// Whether an allocation failed and this was not queried yet.
    is_refused: AtomicBool,
}

/// The registered frames.
#[derive(Debug)]
struct Known {
    frames: Described,
    /// libunwind, if all frames are registered with it in addition to the other unwinder.
    libunwind: Option<&'static Libunwind>,
}

#[derive(Debug)]
enum Described {
    Singles(Singles),
    Regions(Regions),
}

impl Unwinders {
    /// Looks for the unwinder of this process; `None` if there is none that accepts registrations.
    #[must_use]
    pub fn find() -> Option<Self> {
        let found = Found::look()?;
        let frames = match found.kind {
            Kind::OldLibgcc => Described::Regions(Regions::default()),
            Kind::Libgcc | Kind::Llvm => Described::Singles(Singles::default()),
        };
        let known = Known { frames, libunwind: None };
        Some(Self {
            found,
            known: Mutex::new(known),
            is_lost: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        })
    }

    /// Registers nothing from now on, and removes all registrations, as if an allocation had failed.
    pub fn give_up(&self) {
        if let Some(mut known) = self.lock() {
            self.turn_off(&mut known);
        }
    }

    /// Whether an allocation failed since the last call. In this case all registrations were removed, and nothing is registered
    /// any more.
    pub fn take_refusal(&self) -> bool {
        self.is_refused.load(Relaxed) && self.is_refused.swap(false, Relaxed)
    }

    /// The kind of unwinder.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.found.kind
    }

    /// Announces a code load. The code must not run before this returns. Earlier code at its address is unregistered. Code
    /// without unwind info is skipped.
    pub fn load(&self, code: &Code<'_>) {
        if self.is_off.load(Relaxed) {
            return;
        }
        let entries = fallible::attempt(|| entries(code));
        let libunwind = libunwind::look();
        let Some(mut known) = self.lock() else { return };
        let told = entries.and_then(|entries| {
            fallible::attempt(|| self.tell(&mut known, code, &entries, libunwind))
                .and_then(|result| result)
        });
        if let Err(Refused) = told {
            self.turn_off(&mut known);
        }
    }

    /// Stops registering.
    fn turn_off(&self, known: &mut Known) {
        self.is_off.store(true, Relaxed);
        self.is_refused.store(true, Relaxed);
        known.end();
    }

    fn tell(
        &self,
        known: &mut Known,
        code: &Code<'_>,
        entries: &[Entry],
        libunwind: Option<&'static Libunwind>,
    ) -> Result<(), Refused> {
        if let Some(libunwind) = libunwind.filter(|_| known.libunwind.is_none()) {
            known.begin(libunwind)?;
        }
        if entries.is_empty() {
            known.forget(self.found, code.address, code.address.saturating_add(code.size))?;
        }
        for entry in entries {
            match &mut known.frames {
                Described::Singles(singles) => singles.add(self.found, entry)?,
                Described::Regions(regions) => regions.add(self.found, entry)?,
            }
            if let (Some(libunwind), Some(frames)) = (known.libunwind, entry.frames()) {
                libunwind.add(frames)?;
            }
        }
        Ok(())
    }

    /// Announces the unload of the code at `address` with `size` bytes, which does not run any more, nor is on any stack.
    pub fn unload(&self, address: u64, size: u64) {
        if let Some(mut known) = self.lock() {
            let end = address.saturating_add(size);
            let forgotten = fallible::attempt(|| known.forget(self.found, address, end))
                .and_then(|result| result);
            if let Err(Refused) = forgotten {
                self.turn_off(&mut known);
            }
        }
    }

    /// Call this in the child of a fork, on its only thread, before anything else. The registrations of the parent are valid in
    /// the child, too. If another thread was in a method of this value at the fork, the value is left unchanged for ever.
    pub fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.known.try_lock() {
            self.is_lost.store(true, Relaxed);
        } else if let Some(libunwind) = self.lock().and_then(|known| known.libunwind) {
            libunwind.forked();
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Known>> {
        if self.is_lost.load(Relaxed) || self.is_off.load(Relaxed) {
            return None;
        }
        Some(self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    /// Registers all existing code with libunwind.
    fn begin(&mut self, libunwind: &'static Libunwind) -> Result<(), Refused> {
        self.libunwind = Some(libunwind);
        let mut told = Ok(());
        self.frames.each(|frames| {
            if told.is_ok() {
                told = libunwind.add(frames);
            }
        });
        told
    }

    /// Removes all registrations.
    fn end(&mut self) {
        if let Some(libunwind) = self.libunwind.take() {
            self.frames.each(|frames| libunwind.forget(frames.start, frames.end));
        }
        self.frames = match self.frames {
            Described::Singles(_) => Described::Singles(Singles::default()),
            Described::Regions(_) => Described::Regions(Regions::default()),
        };
    }

    fn forget(&mut self, found: Found, start: u64, end: u64) -> Result<(), Refused> {
        match &mut self.frames {
            Described::Singles(singles) => singles.forget(start, end),
            Described::Regions(regions) => regions.forget(found, start, end)?,
        }
        if let Some(libunwind) = self.libunwind {
            libunwind.forget(start, end);
        }
        Ok(())
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.end();
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
