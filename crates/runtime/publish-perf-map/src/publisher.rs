//! The publisher, which a runtime calls.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fallible::{PathText, Refused, Vec};

use crate::error::{Cause, Error};
use crate::line;
use crate::lock::{Guard, Lock};
use crate::options::Options;
use crate::state::State;

/// Number of bytes of a batch that are written at a time.
const BATCH: usize = 64 << 10;

/// The perf map of this process. See the [crate's documentation](crate).
///
/// Every method may be called from any thread at any time, except from signal handlers. If a
/// handler does, and has interrupted one on the same thread, the map is given up. No method waits
/// for another thread for longer than five seconds; then, too, the map is given up. None fails: at
/// the first error the map is given up, which is reported to the [reporter](Options::reporter), and
/// from then on every method does nothing.
#[derive(Debug)]
pub struct PerfMap {
    /// Whether the map was given up or closed.
    off: AtomicBool,
    /// `None` only while the map is being dropped.
    state: Option<Box<Lock<State>>>,
    /// Whether a fork left the state with a thread that does not exist in this process: it is never
    /// touched again, not even to drop it.
    lost: AtomicBool,
    options: Options,
}

impl PerfMap {
    /// Creates `perf-PID.map` in the directory of the options.
    ///
    /// A file that exists already and belongs to this process (from another writer in the process,
    /// or from before an `exec`) is appended to. A file that a dead process with the same pid left
    /// behind is deleted.
    ///
    /// # Errors
    /// The file cannot be created; or its name belongs to a symlink, to something other than a
    /// regular file, or to a file that has another owner, has several names, or is writable by
    /// others. These errors are not reported to the reporter.
    pub fn create(options: Options) -> Result<PerfMap, Error> {
        let state = State::create(&options)?;
        let state = fallible::boxed(Lock::new(state));
        let state = state.map_err(|_| Error::new(Path::new(""), Cause::Memory))?;
        Ok(PerfMap {
            off: AtomicBool::new(false),
            state: Some(state),
            lost: AtomicBool::new(false),
            options,
        })
    }

    /// Announces a code load of `size` bytes at `address`. Code whose first byte was in this range
    /// is dead from now on.
    ///
    /// The name may be any bytes: control characters become `?`, bytes that are not UTF-8 become
    /// U+FFFD, and names longer than 2,000 bytes are cut and end with `...`. Code of size 0, or
    /// that ends beyond the address space, is skipped: no reader would accept its line.
    pub fn load(&self, address: u64, size: u64, name: &[u8]) {
        self.with(|state| state.load(address, size, name));
    }

    /// Announces many code loads, to begin with the code that is already alive: each `write` has 64
    /// KiB of lines. No lock is held while the iterator runs.
    pub fn load_many<N: AsRef<[u8]>>(&self, codes: impl IntoIterator<Item = (u64, u64, N)>) {
        let (mut lines, mut places) = (Vec::new(), Vec::new());
        let push = |lines: &mut Vec<u8>, places: &mut Vec<_>, address, size, name: &[u8]| {
            let pushed = fallible::attempt(|| {
                let length = line::push(lines, address, size, name);
                places.push((address, size, length));
            });
            pushed.map_err(|_| Cause::Memory)
        };
        for (address, size, name) in codes {
            if self.is_off() {
                return;
            }
            if crate::state::can_be(address, size) {
                let pushed = push(&mut lines, &mut places, address, size, name.as_ref());
                if let Err(cause) = pushed {
                    return self.with(|_| Err(cause));
                }
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

    /// Announces the unload of the code that was loaded with this address and size. Its line stays
    /// in the file until its addresses are reused, or the file is rewritten.
    ///
    /// Does nothing if there is no such code, or if other code was loaded over its first byte: an
    /// unload may be announced late.
    pub fn unload(&self, address: u64, size: u64) {
        self.with(|state| state.unload(address, size));
    }

    /// Announces that the code that was loaded with this address and size now runs at `to`. Does
    /// nothing if there is no such code.
    pub fn moved(&self, from: u64, to: u64, size: u64) {
        self.with(|state| state.moved(from, to, size));
    }

    /// Call this in the child of a fork, on its only thread, before anything else: it creates a
    /// file for the child, which begins with the code that is alive.
    ///
    /// Until then, the child writes into its parent's file. If another thread of the parent was in
    /// a method of this map at the fork, the map is given up, because the state may be
    /// inconsistent. Then [`create`](Self::create) another one.
    ///
    /// Not for a child of `vfork`, which shares its parent's memory.
    pub fn forked(&self) {
        if self.is_off() {
            return;
        }
        let Some(lock) = &self.state else { return };
        let Some(mut state) = lock.try_lock() else {
            return self.lose(Cause::ForkedAmidWrite);
        };
        let result = fallible::attempt(|| state.forked(&self.options))
            .unwrap_or_else(|_| Err(Error::new(state.path(), Cause::Memory)));
        self.finish(state, result);
    }

    /// The path of the map, as perf looks for it. `None` if the map was given up.
    #[must_use]
    #[allow(clippy::disallowed_types, reason = "the caller's, made in memory that was not refused")]
    pub fn path(&self) -> Option<std::path::PathBuf> {
        let state = self.lock()?;
        PathText::new(state.path()).map(PathText::into_path_buf)
    }

    /// Whether the map was given up or closed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Closes the map: nothing is written any more. Deletes the file if the
    /// [options](Options::remove_at_end) say so.
    pub fn close(&self) {
        self.off.store(true, Ordering::Relaxed);
        if self.lost.load(Ordering::Relaxed) || !self.options.remove_at_end {
            return;
        }
        if let Some(Ok(state)) = self.state.as_ref().map(|state| state.lock()) {
            state.remove();
        }
    }

    /// Runs `act`, unless the map was given up.
    fn with(&self, act: impl FnOnce(&mut State) -> Result<(), Cause>) {
        if let Some(mut state) = self.lock() {
            let result = fallible::attempt(|| act(&mut state)).unwrap_or(Err(Cause::Memory));
            if let Err(cause) = result {
                let error = Error::new(state.path(), cause);
                self.finish(state, Err(error));
            }
        }
    }

    /// The state, unless the map was given up. This is checked before locking, because after a fork
    /// the lock may never become free, and again after locking, because the map may have been given
    /// up in between.
    fn lock(&self) -> Option<Guard<'_, State>> {
        if self.is_off() {
            return None;
        }
        match self.state.as_ref()?.lock() {
            Ok(state) => (!self.is_off()).then_some(state),
            Err(_) => {
                self.lose(Cause::Interrupted);
                None
            }
        }
    }

    /// Gives the map up without its state, which a thread has that does not go on.
    #[cold]
    fn lose(&self, cause: Cause) {
        self.lost.store(true, Ordering::Relaxed);
        if self.off.swap(true, Ordering::Relaxed) {
            return;
        }
        match crate::open::path_in(&self.options) {
            Ok(path) => self.report(&Error::new(path.as_path(), cause)),
            Err(error) => self.report(&error),
        }
    }

    /// Gives the map up if something failed, and reports this after releasing the lock.
    fn finish(&self, state: Guard<'_, State>, result: Result<(), Error>) {
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
            match fallible::attempt(|| fallible::text!("{error}")) {
                Ok(text) => reporter(&text),
                Err(Refused) => reporter("no perf map: out of memory"),
            }
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
