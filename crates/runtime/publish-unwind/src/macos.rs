//! The publisher on macOS, whose unwinder is LLVM's libunwind, in libSystem.
//!
//! `__register_frame` takes one FDE there, without its CIE before it. The object file without content, by which many codes are found
//! quickly on Linux (`llvm/`), does not exist: the loader there reads no ELF, and a Mach-O image of ours cannot be added to its list. So a
//! walk searches a list of all codes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use fallible::Refused;
use jit_code::Code;

use crate::entries::entries;
use crate::functions::{Functions, Kind};
use crate::singles::Singles;

/// The registrations of jitted code with the unwinder of the process. See the [crate's documentation](crate).
///
/// Every method may be called from any thread, except from signal handlers. None fails: code that cannot be described is left
/// out.
#[derive(Debug)]
pub struct Unwinders {
    functions: Functions,
    singles: Mutex<Singles>,
    /// Whether a fork left the state with a thread that does not exist in this process: it is not touched again.
    is_lost: AtomicBool,
    /// Whether an allocation failed: nothing is registered any more.
    is_off: AtomicBool,
    /// Whether an allocation failed and this was not queried yet.
    is_refused: AtomicBool,
}

impl Unwinders {
    /// Looks for the unwinder of this process; `None` if there is none that accepts registrations.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(Self {
            functions: Functions::look().into_iter().flatten().next()?,
            singles: Mutex::default(),
            is_lost: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        })
    }

    /// Registers nothing from now on, and removes all registrations, as if an allocation had failed.
    pub fn give_up(&self) {
        if let Some(mut singles) = self.lock() {
            self.turn_off(&mut singles);
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
        self.functions.kind
    }

    /// Announces a code load. The code must not run before this returns. Earlier code at its address is unregistered. Code
    /// without unwind info is skipped.
    pub fn load(&self, code: &Code<'_>) {
        if self.is_off.load(Relaxed) {
            return;
        }
        let entries = fallible::attempt(|| entries(code));
        let Some(mut singles) = self.lock() else { return };
        let result = entries.and_then(|entries| {
            singles.forget(code.address, code.address.saturating_add(code.size));
            entries.iter().try_for_each(|entry| singles.add(self.functions, entry))
        });
        if let Err(Refused) = result {
            self.turn_off(&mut singles);
        }
    }

    /// Announces the unload of the code at `address` with `size` bytes, which does not run any more, nor is on any stack.
    pub fn unload(&self, address: u64, size: u64) {
        if let Some(mut singles) = self.lock() {
            singles.forget(address, address.saturating_add(size));
        }
    }

    /// Call this in the child of a fork, on its only thread, before anything else. If another thread was in a method of this value
    /// at the fork, the value is left unchanged for ever.
    pub fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.singles.try_lock() {
            self.is_lost.store(true, Relaxed);
        }
    }

    fn turn_off(&self, singles: &mut Singles) {
        self.is_off.store(true, Relaxed);
        self.is_refused.store(true, Relaxed);
        *singles = Singles::default();
    }

    fn lock(&self) -> Option<MutexGuard<'_, Singles>> {
        if self.is_lost.load(Relaxed) || self.is_off.load(Relaxed) {
            return None;
        }
        Some(self.singles.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
