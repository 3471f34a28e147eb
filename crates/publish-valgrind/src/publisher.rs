//! The publisher: what a runtime calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::code::{Code, Inlined, Line};
use crate::error::{Cause, Error};
use crate::options::Options;
use crate::state::State;

/// What valgrind knows of this process's code, kept true. See the [crate's documentation](crate).
///
/// Every method may be called from any thread at any time, but from a signal handler. None
/// fails: at the first error the publisher gives up, which the [reporter](Options::reporter) is told, and
/// from then on every method does nothing. What valgrind knows by then it goes on knowing.
#[derive(Debug)]
pub struct Valgrind {
    /// Nothing is done any more.
    off: AtomicBool,
    /// Taken only when the publisher is dropped.
    state: Option<Box<Mutex<State>>>,
    /// The state was in the hands of a thread that a fork left behind: it is never touched
    /// again, not even to drop it.
    lost: AtomicBool,
    options: Options,
}

impl Valgrind {
    /// Whether valgrind runs this process. It takes some instructions to ask.
    #[must_use]
    pub fn is_running() -> bool {
        valgrind_request::is_under_valgrind()
    }

    /// Begins, by showing valgrind a page of no meaning, and asking it whether it has seen it.
    ///
    /// # Errors
    /// No valgrind runs this process; the folder takes no files, or none that may be executed; the
    /// valgrind that runs this process does not take object files that come this way.
    pub fn create(options: Options) -> Result<Valgrind, Error> {
        if !Self::is_running() {
            return Err(Error::new(&options.directory, Cause::NoValgrind));
        }
        let mut state = State::new(&options);
        state.test()?;
        Ok(Valgrind {
            off: AtomicBool::new(false),
            state: Some(Box::new(Mutex::new(state))),
            lost: AtomicBool::new(false),
            options,
        })
    }

    /// New code, with its source lines and the calls that were inlined into it, to be told before it runs. Code whose first byte was in its
    /// place is dead from now on.
    ///
    /// Code of no bytes, of more than 64 MiB, where nothing is mapped or where an object file is, is
    /// passed over.
    pub fn load<'l>(
        &self,
        code: &Code<'_>,
        lines: impl IntoIterator<Item = Line<'l>>,
        inlined: impl IntoIterator<Item = Inlined<'l>>,
    ) {
        // What the caller's iterators do is their own affair: no lock is held yet.
        let lines: Vec<Line<'l>> = lines.into_iter().collect();
        let inlined: Vec<Inlined<'l>> = inlined.into_iter().collect();
        self.with(|state| state.load(code, lines.iter().copied(), &inlined));
    }

    /// The code that was loaded with this address and size is dead. It keeps its name until its
    /// addresses are used again: profiles are written at the end.
    pub fn unload(&self, address: u64, size: u64) {
        self.with(|state| {
            state.unload(address, size);
            Ok(())
        });
    }

    /// The code that was loaded with this address and size runs at `to` from now on, where it is
    /// already. Nothing happens if there is none.
    pub fn moved(&self, from: u64, to: u64, size: u64) {
        self.with(|state| state.moved(from, to, size));
    }

    /// To be called in the child of a fork, by its one thread, before anything else is. The child's valgrind
    /// knows what the parent's knew; its files are its own from now on.
    ///
    /// If another thread of the parent was in a method of this publisher while the fork happened, it gives up:
    /// what was in that thread's hands is in no known state.
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
                self.report(&Error::new(&self.options.directory, Cause::ForkedAmidWork));
            }
        }
    }

    /// Whether the publisher has given up.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Does something unless the publisher has given up.
    fn with(&self, act: impl FnOnce(&mut State) -> Result<(), Error>) {
        let Some(mut state) = self.lock() else { return };
        let result = act(&mut state);
        if result.is_err() {
            self.off.store(true, Ordering::Relaxed);
        }
        drop(state);
        if let Err(error) = result {
            self.report(&error);
        }
    }

    /// The state, unless the publisher has given up. Whether it has is asked before, as the lock may never be
    /// had after a fork, and again behind it, as it may have given up meanwhile.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        if self.is_off() {
            return None;
        }
        let state = self.state.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_off()).then_some(state)
    }

    fn report(&self, error: &Error) {
        if let Some(reporter) = &self.options.reporter {
            reporter(&error.to_string());
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
