//! The publisher, which a runtime calls.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use code_image::{Error, Symfile, TAG, Target, VisibleCode};
use fallible::{Refused, Vec};
use guest::Notifier;
use jit_code::Code;

use crate::descriptor;
use crate::files::{self, Files, Pending};
use crate::try_lock::TryLock;

/// How long a thread waits for another one that is calling the debugger.
const PATIENCE: Duration = Duration::from_millis(20);

/// Settings of a [`Gdb`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Options {
    each: bool,
}

impl Options {
    /// Shows each code before [`Gdb::load`] returns, however much of the process's time the debugger takes for it.
    pub fn each(mut self) -> Self {
        self.each = true;
        self
    }
}

/// The state of the files in the child of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum AfterFork {
    /// They are unchanged.
    Unchanged,
    /// Another thread was changing them at the fork, so they were removed. Load all live code again.
    MustReload,
}

/// Shows code to debuggers. Copies refer to the same publisher, which lives as long as the process.
///
/// All methods may be called from any thread at any time, except from signal handlers; none fails. If an allocation fails, no
/// code is shown from then on, and the code that was shown is removed: see [`Self::take_refusal`].
#[derive(Debug, Clone, Copy)]
pub struct Gdb(&'static Shared);

#[derive(Debug)]
struct Shared {
    target: Target,
    tag: [u8; TAG],
    options: Options,
    files: TryLock<Files>,
    /// Events of threads that found the files locked, in order.
    deferred: TryLock<Vec<Event>>,
    deferred_count: AtomicUsize,
    /// Wakes the thread that shows waiting code. In the child of a fork, that thread exists only in the parent.
    waker: Notifier,
    waker_pid: AtomicU32,
    /// Whether an allocation failed: nothing is shown any more.
    is_off: AtomicBool,
    /// Whether an allocation failed and this was not queried yet.
    is_refused: AtomicBool,
}

#[derive(Debug)]
enum Event {
    Load(Symfile),
    /// Key, start, end, and the runtime's own file.
    LoadGiven(u64, u64, u64, Vec<u8>),
    Unload(u64, u64),
}

impl Gdb {
    /// Creates a publisher for code of this machine, which shows nothing yet.
    ///
    /// # Errors
    /// The allocation failed.
    pub fn create(target: Target, options: Options) -> Result<Self, Refused> {
        let shared = fallible::leaked(Shared {
            target,
            tag: [0; TAG],
            options,
            files: TryLock::new(Files::new(options.each)),
            deferred: TryLock::default(),
            deferred_count: AtomicUsize::new(0),
            waker: Notifier::new(),
            waker_pid: AtomicU32::new(0),
            is_off: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        })?;
        shared.tag = files::tag(std::ptr::from_ref(shared).addr());
        Ok(Self(shared))
    }

    /// Stops showing code, and removes the code that is shown, as if an allocation had failed.
    pub fn give_up(&self) {
        self.0.turn_off();
    }

    /// Whether an allocation failed since the last call.
    pub fn take_refusal(&self) -> bool {
        self.0.is_refused.load(SeqCst) && self.0.is_refused.swap(false, SeqCst)
    }

    /// Whether the publisher has given up: nothing is shown any more.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.0.is_off()
    }

    /// Whether something is still to be shown or removed, because the debugger has used up its share of the process's time, or because another thread is calling it.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let has_deferred = self.0.deferred_count.load(SeqCst) > 0;
        has_deferred || self.0.files.try_lock().is_none_or(|files| files.is_pending())
    }

    /// Shows a code load: new code, or code that replaces what was at its address. The `key` is for [`Self::unload`]. A second
    /// load with the same key and address does nothing.
    ///
    /// Of its unwind info, only a ready section is used. The code's bytes are not read. Code of size 0, or at address 0, is
    /// skipped.
    pub fn load(&self, key: u64, code: &Code<'_>) {
        if !self.is_off() {
            let code = VisibleCode::whole(*code);
            self.0.submit_file(Symfile::new(self.0.target, self.0.tag, key, &code));
        }
    }

    /// Like [`Self::load`], for a code whose unwind info is `frames`: see [`Symfile::with_frames`].
    pub fn load_with_frames(&self, key: u64, code: &Code<'_>, frames: &[u8]) {
        let Shared { target, tag, .. } = *self.0;
        if !self.is_off() {
            let code = VisibleCode::whole(*code);
            self.0.submit_file(Symfile::with_frames(target, tag, key, &code, frames));
        }
    }

    /// Like [`Self::load`], with a file that the runtime made of the code ([`Code::symfile`]): it is copied, and shown as it is.
    pub fn load_given(&self, key: u64, code: &Code<'_>, file: &[u8]) {
        let (start, size) = (code.address, code.size);
        if self.is_off() || start == 0 || size == 0 {
            return;
        }
        match fallible::attempt(|| Vec::from(file)) {
            Ok(file) => {
                self.0.submit(Event::LoadGiven(key, start, start.saturating_add(size), file));
            }
            Err(Refused) => self.0.turn_off(),
        }
    }

    /// Shows many codes, to begin with the code that is already alive: in files of up to 1,000 codes each.
    pub fn load_many(&self, codes: impl FnOnce(&mut dyn FnMut(u64, &Code<'_>))) {
        if self.is_off() {
            return;
        }
        let many = fallible::attempt(|| {
            let mut many = Vec::new();
            let Shared { target, tag, .. } = *self.0;
            codes(
                &mut |key, code| match Symfile::new(target, tag, key, &VisibleCode::whole(*code)) {
                    Ok(symfile) => many.push(Event::Load(symfile)),
                    Err(Error::Memory(_)) => fallible::refuse(),
                    Err(_) => {}
                },
            );
            many
        });
        match many {
            Ok(many) => self.0.submit_all(many),
            Err(Refused) => self.0.turn_off(),
        }
    }

    /// Announces the unload of the code that was loaded with this key at this address.
    pub fn unload(&self, key: u64, start: u64) {
        if !self.is_off() {
            self.0.submit(Event::Unload(key, start));
        }
    }

    /// Call this in the child of a fork, on its only thread, before anything else.
    ///
    /// Until then, the child's list is a copy of its parent's.
    pub fn forked(&self) -> AfterFork {
        self.0.forked()
    }
}

impl Shared {
    fn is_off(&self) -> bool {
        self.is_off.load(SeqCst)
    }

    /// Stops showing code, and removes the code that is shown as soon as no other thread holds the files.
    fn turn_off(&'static self) {
        if !self.is_off.swap(true, SeqCst) {
            self.is_refused.store(true, SeqCst);
        }
        // A thread that holds the files checks this when it is done.
        if let Some(mut files) = self.files.try_lock() {
            self.close_down(&mut files);
        }
    }

    /// Removes everything from the list before the files are dropped.
    fn close_down(&self, files: &mut Files) {
        descriptor::unregister_tagged(self.tag);
        files.hide_given();
        *files = Files::new(self.options.each);
        if let Some(mut deferred) = self.deferred.try_lock() {
            self.deferred_count.fetch_sub(deferred.len(), SeqCst);
            deferred.clear();
        }
    }

    /// Runs `work` on the files; gives up if an allocation fails.
    fn with(&'static self, files: &mut Files, work: impl FnOnce(&mut Files) -> Pending) -> Pending {
        if !self.is_off() {
            match fallible::attempt(|| work(&mut *files)) {
                Ok(pending) => return pending,
                Err(Refused) => {
                    self.is_off.store(true, SeqCst);
                    self.is_refused.store(true, SeqCst);
                }
            }
        }
        self.close_down(files);
        Pending::Nothing
    }

    fn submit_file(&'static self, symfile: Result<Symfile, Error>) {
        match symfile {
            Ok(symfile) => self.submit(Event::Load(symfile)),
            Err(Error::Memory(_)) => self.turn_off(),
            // There is nothing to show.
            Err(_) => {}
        }
    }

    fn submit(&'static self, event: Event) {
        if let Some(mut files) = self.files.try_lock() {
            let pending = self.with(&mut files, |files| {
                self.apply_deferred(files);
                apply(files, event);
                files.flush()
            });
            drop(files);
            self.schedule_flush(pending);
        } else {
            let is_deferred = self.deferred.lock().try_push(event).is_ok();
            if !is_deferred {
                return self.turn_off();
            }
            self.deferred_count.fetch_add(1, SeqCst);
        }
        self.drain_deferred();
    }

    fn submit_all(&'static self, events: Vec<Event>) {
        let mut deferred = self.deferred.lock();
        if deferred.try_reserve(events.len()).is_err() {
            drop(deferred);
            return self.turn_off();
        }
        self.deferred_count.fetch_add(events.len(), SeqCst);
        deferred.extend(events);
        drop(deferred);
        self.drain_deferred();
    }

    /// Applies the events that other threads deferred, unless another thread is about to.
    fn drain_deferred(&'static self) {
        if self.is_off() {
            // The thread that turned it off may have found the files held by this thread.
            return self.turn_off();
        }
        let mut began = None;
        while self.deferred_count.load(SeqCst) > 0 {
            if let Some(mut files) = self.files.try_lock() {
                let pending = self.with(&mut files, |files| {
                    self.apply_deferred(files);
                    files.flush()
                });
                drop(files);
                self.schedule_flush(pending);
            } else if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                // The thread that holds the files checks for this when it is done.
                return;
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    fn apply_deferred(&self, files: &mut Files) {
        if self.deferred_count.load(SeqCst) > 0 {
            let events = {
                let mut deferred = self.deferred.lock();
                self.deferred_count.fetch_sub(deferred.len(), SeqCst);
                std::mem::take(&mut *deferred)
            };
            for event in events {
                apply(files, event);
            }
        }
    }

    /// Makes a thread flush what must wait.
    fn schedule_flush(&'static self, pending: Pending) {
        let Pending::Wait(_) = pending else { return };
        let pid = std::process::id();
        if self.waker_pid.swap(pid, SeqCst) == pid {
            self.waker.notify();
            return;
        }
        if guest::spawn("jitscribe-gdb", move || self.wake()).is_err() {
            // The next call tries again.
            self.waker_pid.store(0, SeqCst);
        }
    }

    /// Shows waiting code when it is due. Does not return.
    fn wake(&'static self) {
        loop {
            let pending = match self.files.try_lock() {
                Some(mut files) => self.with(&mut files, |files| {
                    self.apply_deferred(files);
                    files.flush()
                }),
                None => Pending::Wait(Duration::from_millis(1)),
            };
            match pending {
                Pending::Nothing if self.deferred_count.load(SeqCst) > 0 => {}
                Pending::Nothing => self.waker.wait(),
                Pending::Wait(time) => std::thread::sleep(time),
            }
        }
    }

    fn forked(&'static self) -> AfterFork {
        descriptor::repair_after_fork();
        self.waker.reset();
        let is_free = self.files.try_lock().is_some() && self.deferred.try_lock().is_some();
        if is_free {
            return AfterFork::Unchanged;
        }
        // Files of the runtime's own stay in the list, with their memory: nothing distinguishes them from those of others.
        // SAFETY: the caller of `forked` guarantees that the child has only one thread.
        #[allow(unsafe_code)]
        unsafe {
            self.files.replace(Files::new(self.options.each));
            self.deferred.replace(Vec::new());
        }
        self.deferred_count.store(0, SeqCst);
        descriptor::unregister_tagged(self.tag);
        AfterFork::MustReload
    }
}

fn apply(files: &mut Files, event: Event) {
    match event {
        Event::Load(symfile) => files.load(symfile),
        Event::LoadGiven(key, start, end, file) => files.load_given(key, start, end, file),
        Event::Unload(key, start) => files.unload(key, start),
    }
}

#[cfg(test)]
mod tests {
    use code_image::{Endian, Target};

    use super::{Gdb, Options};

    #[test]
    fn giving_up_turns_it_off() {
        let target = Target::new(62, Endian::Little);
        let gdb = Gdb::create(target, Options::default()).unwrap();
        assert!(!gdb.is_off() && !gdb.take_refusal());
        gdb.give_up();
        assert!(gdb.is_off() && gdb.take_refusal() && !gdb.take_refusal());
    }
}
