//! The publisher, which a runtime calls.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use code_image::{Error, Symfile, TAG, Target, VisibleCode};
use fallible::{Refused, Vec};
use guest::Bell;
use jit_code::Code;

use crate::descriptor;
use crate::files::{self, Files, Rest};
use crate::latch::Latch;

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
pub enum Forked {
    /// They are unchanged.
    Kept,
    /// Another thread was about to change them at the fork: they are gone. Load all code that is alive again.
    Lost,
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
    files: Latch<Files>,
    /// Events that threads left while another one had the files, in order.
    left: Latch<Vec<Event>>,
    left_count: AtomicUsize,
    /// Wakes the thread that shows waiting code. In the child of a fork, that thread exists only in the parent.
    waker: Bell,
    waker_pid: AtomicU32,
    /// Whether an allocation failed: nothing is shown any more.
    is_off: AtomicBool,
    /// Whether an allocation failed and this was not queried yet.
    is_refused: AtomicBool,
}

#[derive(Debug)]
enum Event {
    Load(Symfile),
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
            files: Latch::new(Files::new(options.each)),
            left: Latch::default(),
            left_count: AtomicUsize::new(0),
            waker: Bell::new(),
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
    pub fn forked(&self) -> Forked {
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
        if let Some(mut files) = self.files.try_close() {
            self.close_down(&mut files);
        }
    }

    /// Removes everything from the list before the files are dropped.
    fn close_down(&self, files: &mut Files) {
        descriptor::unregister_tagged(self.tag);
        *files = Files::new(self.options.each);
        if let Some(mut left) = self.left.try_close() {
            self.left_count.fetch_sub(left.len(), SeqCst);
            left.clear();
        }
    }

    /// Runs `work` on the files; gives up if an allocation fails.
    fn with(&'static self, files: &mut Files, work: impl FnOnce(&mut Files) -> Rest) -> Rest {
        if !self.is_off() {
            match fallible::attempt(|| work(&mut *files)) {
                Ok(rest) => return rest,
                Err(Refused) => {
                    self.is_off.store(true, SeqCst);
                    self.is_refused.store(true, SeqCst);
                }
            }
        }
        self.close_down(files);
        Rest::Nothing
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
        if let Some(mut files) = self.files.try_close() {
            let rest = self.with(&mut files, |files| {
                self.take_left(files);
                apply(files, event);
                files.settle()
            });
            drop(files);
            self.come_back(rest);
        } else {
            let is_left = self.left.close().try_push(event).is_ok();
            if !is_left {
                return self.turn_off();
            }
            self.left_count.fetch_add(1, SeqCst);
        }
        self.look_after();
    }

    fn submit_all(&'static self, events: Vec<Event>) {
        let mut left = self.left.close();
        if left.try_reserve(events.len()).is_err() {
            drop(left);
            return self.turn_off();
        }
        self.left_count.fetch_add(events.len(), SeqCst);
        left.extend(events);
        drop(left);
        self.look_after();
    }

    /// Processes what other threads left, unless another thread is about to.
    fn look_after(&'static self) {
        if self.is_off() {
            // The thread that turned it off may have found the files held by this thread.
            return self.turn_off();
        }
        let mut began = None;
        while self.left_count.load(SeqCst) > 0 {
            if let Some(mut files) = self.files.try_close() {
                let rest = self.with(&mut files, |files| {
                    self.take_left(files);
                    files.settle()
                });
                drop(files);
                self.come_back(rest);
            } else if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                // The thread that holds the files checks for this when it is done.
                return;
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    fn take_left(&self, files: &mut Files) {
        if self.left_count.load(SeqCst) > 0 {
            let events = {
                let mut left = self.left.close();
                self.left_count.fetch_sub(left.len(), SeqCst);
                std::mem::take(&mut *left)
            };
            for event in events {
                apply(files, event);
            }
        }
    }

    /// Makes a thread come back for what must wait.
    fn come_back(&'static self, rest: Rest) {
        let Rest::Wait(_) = rest else { return };
        let pid = std::process::id();
        if self.waker_pid.swap(pid, SeqCst) == pid {
            self.waker.ring();
            return;
        }
        if guest::spawn("jitscribe-gdb", move || self.wake()).is_err() {
            // The next call tries again.
            self.waker_pid.store(0, SeqCst);
        }
    }

    /// Shows waiting code when it is due, for ever.
    fn wake(&'static self) {
        loop {
            let rest = match self.files.try_close() {
                Some(mut files) => self.with(&mut files, |files| {
                    self.take_left(files);
                    files.settle()
                }),
                None => Rest::Wait(Duration::from_millis(1)),
            };
            match rest {
                Rest::Nothing if self.left_count.load(SeqCst) > 0 => {}
                Rest::Nothing => self.waker.wait(),
                Rest::Wait(time) => std::thread::sleep(time),
            }
        }
    }

    fn forked(&'static self) -> Forked {
        descriptor::mend();
        self.waker.reset();
        let is_free = self.files.try_close().is_some() && self.left.try_close().is_some();
        if is_free {
            return Forked::Kept;
        }
        // SAFETY: the caller of `forked` guarantees that the child has only one thread.
        #[allow(unsafe_code)]
        unsafe {
            self.files.replace(Files::new(self.options.each));
            self.left.replace(Vec::new());
        }
        self.left_count.store(0, SeqCst);
        descriptor::unregister_tagged(self.tag);
        Forked::Lost
    }
}

fn apply(files: &mut Files, event: Event) {
    match event {
        Event::Load(symfile) => files.load(symfile),
        Event::Unload(key, start) => files.unload(key, start),
    }
}

#[cfg(test)]
mod tests {
    use code_image::{Endian, Target};

    use super::{Gdb, Options};

    #[test]
    fn it_is_off_once_it_was_given_up() {
        let target = Target::new(62, Endian::Little);
        let gdb = Gdb::create(target, Options::default()).unwrap();
        assert!(!gdb.is_off() && !gdb.take_refusal());
        gdb.give_up();
        assert!(gdb.is_off() && gdb.take_refusal() && !gdb.take_refusal());
    }
}
