//! The publisher: what a runtime calls.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use code_image::{Code, Symfile, TAG, Target};

use crate::descriptor;
use crate::files::{self, Files, Rest};
use crate::latch::Latch;

/// How long a thread waits for another that speaks to the debugger.
const PATIENCE: Duration = Duration::from_millis(20);

/// How a [`Gdb`] is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Options {
    each: bool,
}

impl Options {
    /// Each code is shown before [`Gdb::load`] returns, however much of the process's time the debugger takes for it.
    pub fn each(mut self) -> Self {
        self.each = true;
        self
    }
}

/// What became of the files in the child of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Forked {
    /// They are as they were.
    Kept,
    /// Another thread was about to change them at the fork: they are gone. All that is alive is to be loaded again.
    Lost,
}

/// Shows code to debuggers. Copies are the same publisher; it lives as long as the process.
///
/// All methods may be called from any thread at any time, but from a signal handler; none fails.
#[derive(Debug, Clone, Copy)]
pub struct Gdb(&'static Shared);

#[derive(Debug)]
struct Shared {
    target: Target,
    tag: [u8; TAG],
    options: Options,
    files: Latch<Files>,
    /// What threads left while another one had the files, in order.
    left: Latch<Vec<Event>>,
    left_count: AtomicUsize,
    /// The thread that shows what waits. Of a fork's child, it is in the parent.
    waker: Latch<Option<std::thread::Thread>>,
    waker_pid: AtomicU32,
}

#[derive(Debug)]
enum Event {
    Load(Symfile),
    Unload(u64, u64),
}

impl Gdb {
    /// A publisher for code of this machine, which shows nothing yet.
    #[must_use]
    pub fn create(target: Target, options: Options) -> Self {
        let shared = Box::leak(Box::new(Shared {
            target,
            tag: [0; TAG],
            options,
            files: Latch::new(Files::new(options.each)),
            left: Latch::default(),
            left_count: AtomicUsize::new(0),
            waker: Latch::default(),
            waker_pid: AtomicU32::new(0),
        }));
        shared.tag = files::tag(std::ptr::from_ref(shared).addr());
        Self(shared)
    }

    /// Shows a code: made, or put in the place of what was there. The `key` is for [`Self::unload`]. A second load with
    /// one key at one address does nothing.
    ///
    /// The bytes of the code are not looked at. Code of no bytes, or at the address 0, is passed over.
    pub fn load(&self, key: u64, code: &Code<'_>) {
        if let Ok(symfile) = Symfile::new(self.0.target, self.0.tag, key, code) {
            self.0.submit(Event::Load(symfile));
        }
    }

    /// [`Self::load`] for a code whose unwind info is `frames`: see [`Symfile::with_frames`].
    pub fn load_with_frames(&self, key: u64, code: &Code<'_>, frames: &[u8]) {
        let Shared { target, tag, .. } = *self.0;
        if let Ok(symfile) = Symfile::with_frames(target, tag, key, code, frames) {
            self.0.submit(Event::Load(symfile));
        }
    }

    /// Many codes, to begin with what lives already: in files of up to 1,000 codes at once.
    pub fn load_many(&self, codes: impl FnOnce(&mut dyn FnMut(u64, &Code<'_>))) {
        let mut many = Vec::new();
        codes(&mut |key, code| {
            if let Ok(symfile) = Symfile::new(self.0.target, self.0.tag, key, code) {
                many.push(Event::Load(symfile));
            }
        });
        self.0.submit_all(many);
    }

    /// The code that was loaded with this key at this address is gone.
    pub fn unload(&self, key: u64, start: u64) {
        self.0.submit(Event::Unload(key, start));
    }

    /// To be called in the child of a fork, by its one thread, before anything else is.
    ///
    /// Until then the child's list is a copy of its parent's, and as true as that.
    pub fn forked(&self) -> Forked {
        self.0.forked()
    }
}

impl Shared {
    fn submit(&'static self, event: Event) {
        if let Some(mut files) = self.files.try_close() {
            self.take_left(&mut files);
            apply(&mut files, event);
            let rest = files.settle();
            drop(files);
            self.come_back(rest);
        } else {
            self.left.close().push(event);
            self.left_count.fetch_add(1, SeqCst);
        }
        self.look_after();
    }

    fn submit_all(&'static self, events: Vec<Event>) {
        let mut left = self.left.close();
        self.left_count.fetch_add(events.len(), SeqCst);
        left.extend(events);
        drop(left);
        self.look_after();
    }

    /// Does what was left, unless another thread is about to.
    fn look_after(&'static self) {
        let mut began = None;
        while self.left_count.load(SeqCst) > 0 {
            if let Some(mut files) = self.files.try_close() {
                self.take_left(&mut files);
                let rest = files.settle();
                drop(files);
                self.come_back(rest);
            } else if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                // Who has the files looks here when it is done.
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

    /// Has a thread come back for what must wait.
    fn come_back(&'static self, rest: Rest) {
        let Rest::Wait(_) = rest else { return };
        let pid = std::process::id();
        if self.waker_pid.swap(pid, SeqCst) == pid {
            // Who starts it may not have come to write it down: then it has not looked yet.
            if let Some(waker) = self.waker.try_close()
                && let Some(waker) = &*waker
            {
                waker.unpark();
            }
            return;
        }
        let thread = in_process::spawn("jitscribe-gdb", move || self.wake());
        if let Ok(thread) = thread {
            *self.waker.close() = Some(thread.thread().clone());
        }
    }

    /// Shows what waits, when it may, for ever.
    fn wake(&'static self) {
        loop {
            let rest = match self.files.try_close() {
                Some(mut files) => {
                    self.take_left(&mut files);
                    files.settle()
                }
                None => Rest::Wait(Duration::from_millis(1)),
            };
            match rest {
                Rest::Nothing if self.left_count.load(SeqCst) > 0 => {}
                Rest::Nothing => std::thread::park(),
                Rest::Wait(time) => std::thread::sleep(time),
            }
        }
    }

    fn forked(&'static self) -> Forked {
        descriptor::mend();
        let is_free = self.files.try_close().is_some()
            && self.left.try_close().is_some()
            && self.waker.try_close().is_some();
        if is_free {
            return Forked::Kept;
        }
        // SAFETY: the child has one thread, says the caller of `forked`.
        #[allow(unsafe_code)]
        unsafe {
            self.files.replace(Files::new(self.options.each));
            self.left.replace(Vec::new());
            self.waker.replace(None);
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
