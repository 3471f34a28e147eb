//! The publisher, which a runtime calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use fallible::Refused;

use crate::error::{Cause, Error};
use crate::options::Options;
use crate::state::State;
use jit_code::Code;

/// Keeps Valgrind's debug info for this process's code up to date. See the [crate's documentation](crate).
///
/// Every method may be called from any thread at any time, except from signal handlers. None fails: at the first error the
/// publisher gives up, which is reported to the [reporter](Options::reporter), and from then on every method does nothing. What
/// Valgrind knows by then remains.
#[derive(Debug)]
pub struct Valgrind {
    /// Whether the publisher has given up.
    off: AtomicBool,
    /// `None` only while the publisher is being dropped.
    state: Option<Box<Mutex<State>>>,
    /// Whether a fork left the state with a thread that does not exist in this process: it is never touched again, not even to
    /// drop it.
    lost: AtomicBool,
    options: Options,
}

impl Valgrind {
    /// Whether Valgrind runs this process. Takes a few instructions.
    #[must_use]
    pub fn is_running() -> bool {
        guest::valgrind::is_under_valgrind()
    }

    /// Creates the publisher. It shows Valgrind an empty page, and asks whether Valgrind has read it.
    ///
    /// # Errors
    /// No Valgrind runs this process; the directory does not accept files, or none that may be executed; or the Valgrind that
    /// runs this process does not read object files that are mapped in this way.
    pub fn create(options: Options) -> Result<Valgrind, Error> {
        if !Self::is_running() {
            return Err(options.error(Cause::NoValgrind));
        }
        if options.is_refused || options.directory.is_none() {
            return Err(options.error(Cause::Memory));
        }
        let _uncounted = guest::uncounted();
        let refused = |_| options.error(Cause::Memory);
        let state = fallible::attempt(|| {
            let mut state = State::new(&options);
            state.test().map(|()| state)
        });
        let state = fallible::boxed(Mutex::new(state.map_err(refused)??)).map_err(refused)?;
        Ok(Valgrind {
            off: AtomicBool::new(false),
            state: Some(state),
            lost: AtomicBool::new(false),
            options,
        })
    }

    /// Announces a code load, with source lines and inlined calls. Call it before the code runs. Code whose first byte was in
    /// this range is dead from now on.
    ///
    /// Code of size 0, of more than 64 MiB, where nothing is mapped, or where an object file is mapped is skipped.
    pub fn load(&self, code: &Code<'_>) {
        self.with(|state| state.load(code));
    }

    /// Announces the unload of the code that was loaded with this address and size. It keeps its name until its addresses are
    /// reused, because profiles are written at the end.
    pub fn unload(&self, address: u64, size: u64) {
        self.with(|state| {
            state.unload(address, size);
            Ok(())
        });
    }

    /// Announces that the code that was loaded with this address and size now runs at `to`, where it already is. Does nothing if
    /// there is no such code.
    pub fn moved(&self, from: u64, to: u64, size: u64) {
        self.with(|state| state.moved(from, to, size));
    }

    /// Call this when the process ends. Profiles are written after that, with the lines that Valgrind knows then. So code whose
    /// memory was unmapped, as many runtimes do with all of their code at the end, is shown again, at addresses that are now mapped
    /// without access. Does nothing if another thread is in a method of this publisher.
    pub fn restore(&self) {
        let is_busy = matches!(
            self.state.as_ref().map(|lock| lock.try_lock()),
            None | Some(Err(TryLockError::WouldBlock))
        );
        if !self.is_off() && !is_busy {
            self.with(State::restore);
        }
    }

    /// Call this in the child of a fork, on its only thread, before anything else. The child's Valgrind knows what the parent's
    /// knew; its files are its own from now on.
    ///
    /// If another thread of the parent was in a method of this publisher at the fork, the publisher gives up, because the state
    /// may be inconsistent.
    pub fn forked(&self) {
        if self.is_off() {
            return;
        }
        let Some(lock) = &self.state else { return };
        match lock.try_lock() {
            Ok(mut state) => state.forked(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().forked(),
            Err(TryLockError::WouldBlock) => {
                self.lost.store(true, Ordering::Relaxed);
                self.off.store(true, Ordering::Relaxed);
                self.report(&self.options.error(Cause::ForkedAmidWork));
            }
        }
    }

    /// Whether the publisher has given up.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Runs `act`, unless the publisher has given up.
    fn with(&self, act: impl FnOnce(&mut State) -> Result<(), Error>) {
        let _uncounted = guest::uncounted();
        let Some(mut state) = self.lock() else { return };
        let result = fallible::attempt(|| act(&mut state))
            .unwrap_or_else(|Refused| Err(self.options.error(Cause::Memory)));
        if result.is_err() {
            self.off.store(true, Ordering::Relaxed);
        }
        drop(state);
        if let Err(error) = result {
            self.report(&error);
        }
    }

    /// The state, unless the publisher has given up. This is checked before locking, because after a fork the lock may never
    /// become free, and again after locking, because the publisher may have given up in between.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        if self.is_off() {
            return None;
        }
        let state = self.state.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_off()).then_some(state)
    }

    fn report(&self, error: &Error) {
        if let Some(reporter) = &self.options.reporter {
            match fallible::attempt(|| fallible::text!("{error}")) {
                Ok(text) => reporter(&text),
                Err(Refused) => reporter("valgrind is shown no code: out of memory"),
            }
        }
    }
}

impl Drop for Valgrind {
    fn drop(&mut self) {
        let state = self.state.take();
        if self.lost.load(Ordering::Relaxed) {
            std::mem::forget(state);
        }
    }
}
