//! The publisher: what a runtime calls.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::{Cause, Error};
use crate::line;
use crate::options::Options;
use crate::state::State;

/// How much of a batch is written at once.
const BATCH: usize = 64 << 10;

/// The perf map of this process, kept true. See the [crate's documentation](crate).
///
/// Every method may be called from any thread at any time, but from a signal handler. None
/// fails: at the first error the map is given up, which the
/// [reporter](Options::reporter) is told, and from then on every method does nothing.
#[derive(Debug)]
pub struct PerfMap {
    /// Nothing is done any more.
    off: AtomicBool,
    /// Taken only when the map is dropped.
    state: Option<Box<Mutex<State>>>,
    /// The state was in the hands of a thread that a fork left behind: it is never touched
    /// again, not even to drop it.
    lost: AtomicBool,
    options: Options,
}

impl PerfMap {
    /// Creates `perf-PID.map` in the folder that the options name.
    ///
    /// If there is one already and it is this process's own (of another writer in the process,
    /// or from before an `exec`), it is appended to; what a dead process of the same number
    /// left is deleted.
    ///
    /// # Errors
    /// The file cannot be created; or what has its name is a symlink, no regular file, of
    /// another user, has several names or may be written by others. Nothing is told to the
    /// reporter then.
    pub fn create(options: Options) -> Result<PerfMap, Error> {
        let state = State::create(&options)?;
        Ok(PerfMap {
            off: AtomicBool::new(false),
            state: Some(Box::new(Mutex::new(state))),
            lost: AtomicBool::new(false),
            options,
        })
    }

    /// New code: `size` bytes at `address`. Code whose first byte was in there is dead from
    /// now on.
    ///
    /// The name may be any bytes: control characters become `?`, what is not UTF-8 becomes
    /// U+FFFD, what is longer than 2,000 bytes is cut and ends with `...`. Code of no bytes, or
    /// that ends beyond the address space, is passed over: no reader takes its line.
    pub fn load(&self, address: u64, size: u64, name: &[u8]) {
        self.with(|state| state.load(address, size, name));
    }

    /// Many codes at once, to begin with what lives already: 64 KiB of lines with each
    /// `write`. No lock is held while the iterator runs.
    pub fn load_many<N: AsRef<[u8]>>(&self, codes: impl IntoIterator<Item = (u64, u64, N)>) {
        let mut lines = Vec::new();
        let mut places = Vec::new();
        for (address, size, name) in codes {
            if self.is_off() {
                return;
            }
            if crate::state::can_be(address, size) {
                let length = line::push(&mut lines, address, size, name.as_ref());
                places.push((address, size, length));
            }
            if lines.len() >= BATCH {
                self.with(|state| state.load_lines(&lines, &places));
                lines.clear();
                places.clear();
            }
        }
        if !lines.is_empty() {
            self.with(|state| state.load_lines(&lines, &places));
        }
    }

    /// The code that was loaded with this address and size is dead. Its line stays in the file
    /// until its addresses are used again, or the file is written anew.
    ///
    /// Nothing happens if there is no such code, or if other code was loaded over its first
    /// byte: the end of a code may be told late.
    pub fn unload(&self, address: u64, size: u64) {
        self.with(|state| state.unload(address, size));
    }

    /// The code that was loaded with this address and size runs at `to` from now on. Nothing
    /// happens if there is none.
    pub fn moved(&self, from: u64, to: u64, size: u64) {
        self.with(|state| state.moved(from, to, size));
    }

    /// To be called in the child of a fork, by its one thread, before anything else is: opens a
    /// file for the child, which begins with the code that lives.
    ///
    /// Until then the child writes into its parent's file. If another thread of the parent was
    /// in a method of this map while the fork happened, the map is given up: what was in that
    /// thread's hands is in no known state. [`create`](Self::create) another one then.
    ///
    /// Not for a child of `vfork`, which shares its parent's memory.
    pub fn forked(&self) {
        if self.is_off() {
            return;
        }
        let Some(lock) = &self.state else { return };
        let mut state = match lock.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.lost.store(true, Ordering::Relaxed);
                self.off.store(true, Ordering::Relaxed);
                let path = crate::open::path_in(&self.options.directory);
                self.report(&Error::new(&path, Cause::ForkedAmidWrite));
                return;
            }
        };
        let result = state.forked(&self.options);
        self.finish(state, result);
    }

    /// The map's path, as perf looks for it. `None` once the map was given up.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        let state = self.lock()?;
        Some(state.path().to_owned())
    }

    /// Whether the map was given up or closed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Ends the map: nothing is written any more. The file is deleted if the
    /// [options](Options::remove_at_end) say so.
    pub fn close(&self) {
        self.off.store(true, Ordering::Relaxed);
        if self.lost.load(Ordering::Relaxed) || !self.options.remove_at_end {
            return;
        }
        if let Some(state) = &self.state {
            state.lock().unwrap_or_else(PoisonError::into_inner).remove();
        }
    }

    /// Does something unless the map was given up.
    fn with(&self, act: impl FnOnce(&mut State) -> Result<(), Cause>) {
        if let Some(mut state) = self.lock() {
            let result = act(&mut state);
            if let Err(cause) = result {
                let error = Error::new(state.path(), cause);
                self.finish(state, Err(error));
            }
        }
    }

    /// The state, unless the map was given up. Whether it was is asked before, as the lock may
    /// never be had after a fork, and again behind it, as it may have been given up meanwhile.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        if self.is_off() {
            return None;
        }
        let state = self.state.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_off()).then_some(state)
    }

    /// Gives the map up if something failed, and says so once the lock is free again.
    fn finish(&self, state: MutexGuard<'_, State>, result: Result<(), Error>) {
        if result.is_err() {
            self.off.store(true, Ordering::Relaxed);
        }
        drop(state);
        if let Err(error) = result {
            self.report(&error);
        }
    }

    fn report(&self, error: &Error) {
        if let Some(reporter) = &self.options.reporter {
            reporter(&error.to_string());
        }
    }
}

impl Drop for PerfMap {
    fn drop(&mut self) {
        self.close();
        if self.lost.load(Ordering::Relaxed) {
            std::mem::forget(self.state.take());
        }
    }
}
