//! The scribe: takes announcements, and passes them on to whoever is to know.

use std::num::NonZeroU32;
#[cfg(unix)]
use std::path::Path;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::arenas;
use crate::code::Code;
use crate::crash;
use crate::debuggers::Debuggers;
use crate::latch::Latch;
use crate::log::{Announced, ForkPage, Living, Log, Position};
use crate::notice::{self, Notice, Subject};
use crate::perf_maps::PerfMaps;
use crate::settings::{Builder, Settings};
use crate::thread;
use crate::unwinders::Unwinders;
use crate::valgrind::Valgrind;
use jitdump::extension::control;

/// Takes announcements of code. Copies are the same scribe; it lives as long as the process.
///
/// All methods may be called from any thread at any time, and none of them fails, blocks on other
/// threads for longer than these take to write a record, or calls back into the runtime (but for
/// the callbacks that it was given, with no lock held).
#[derive(Clone, Copy, Debug)]
pub struct Scribe(&'static Shared);

/// A code that was announced. Dropping it says that the code is gone.
#[derive(Debug)]
#[must_use = "dropping it says that the code is gone; `keep` it if it lives as long as the process"]
pub struct LoadedCode {
    shared: &'static Shared,
    /// `None` if nothing was written.
    position: Option<Position>,
    index: u32,
}

/// What all copies of a scribe share. It is never freed: a thread may be in the middle of an announcement
/// when another one ends the process.
pub(crate) struct Shared {
    log: Option<Log>,
    /// 0 in a fork's child that does not know yet that it is one.
    alive: Option<ForkPage>,
    pid: AtomicU32,
    perf_maps: PerfMaps,
    debuggers: Debuggers,
    unwinders: Unwinders,
    valgrind: Valgrind,
    obeying: Latch,
    said_full: AtomicBool,
    settings: Settings,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("log", &self.log).finish_non_exhaustive()
    }
}

/// What the fork page holds in a process that knows itself, and in one that is finding out.
const KNOWN: u32 = 1;
const ADOPTING: u32 = 2;
const ORPHAN: u32 = 3;

/// A scribe that writes nothing, for those who need one before they have settings.
static NOBODY: Shared = Shared {
    log: None,
    alive: None,
    pid: AtomicU32::new(0),
    perf_maps: PerfMaps::new(),
    debuggers: Debuggers::new(),
    unwinders: Unwinders::new(),
    valgrind: Valgrind::new(),
    obeying: Latch::new(),
    said_full: AtomicBool::new(false),
    settings: Settings::off(),
};

impl Scribe {
    /// The scribe that the environment asks for; see [`Builder::environment`].
    #[must_use]
    pub fn from_env() -> Self {
        Self::builder().environment().build()
    }

    /// A scribe with settings of one's own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A scribe that writes nothing, ever.
    #[must_use]
    pub fn off() -> Self {
        Self(&NOBODY)
    }

    pub(crate) fn new(settings: Settings) -> Self {
        let say = |subject, text: &dyn std::fmt::Display| {
            notice::say(settings.listener.as_ref(), &Notice::new(subject, text));
        };
        let log = Log::create(settings.log.clone(), |failure, instead| {
            say(Subject::Log, &format_args!("{failure}; {instead}"));
        })
        .map_err(|failure| say(Subject::Log, &format_args!("{failure}; no code is announced")))
        .ok();
        let alive = ForkPage::new()
            .inspect(|page| page.word().store(KNOWN, Relaxed))
            .map_err(|error| {
                say(Subject::Fork, &format_args!("no page is cleared on fork ({error}): each announcement asks for the process's id"));
            })
            .ok();
        let shared = Box::leak(Box::new(Shared {
            log,
            alive,
            pid: AtomicU32::new(crate::log::process_id()),
            perf_maps: PerfMaps::new(),
            debuggers: Debuggers::new(),
            unwinders: Unwinders::new(),
            valgrind: Valgrind::new(),
            obeying: Latch::new(),
            said_full: AtomicBool::new(false),
            settings,
        }));
        let scribe = Self(shared);
        scribe.begin();
        scribe
    }

    /// Whether announcements are written down. What takes time to prepare can be left when not.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.control() != 0
    }

    /// Announces code: made, or put in the place of what was there. Call it before the code runs.
    #[inline]
    pub fn load(&self, code: &Code<'_>) -> LoadedCode {
        if self.0.control() == 0 {
            return LoadedCode { shared: self.0, position: None, index: 0 };
        }
        self.0.load(code)
    }

    /// Does what was asked for from outside, if anything was: `jitscribe ctl`. Announcements do so too; a
    /// runtime that has none to make for a long time may call this now and then.
    pub fn poll(&self) {
        if self.0.control() & control::WISH != 0 {
            self.0.obey();
        }
    }

    /// Shows debuggers all code that is alive, for a signal handler that knows the signal for a crash and has a debugger
    /// look, or writes a core file, before it returns. It may be called in any handler, and anywhere else, with
    /// whatever locks held; it waits for five seconds at most for the thread that [`Builder::gdb_on_crash`] made.
    ///
    /// Whether all is shown. `false` without that setting, unless all that is announced is shown anyhow.
    #[cfg(feature = "gdb")]
    pub fn show_before_crash(&self) -> bool {
        let shown = control::GDB | control::LOG;
        self.0.control() & (shown | control::WISH) == shown
            || (self.0.settings.gdb_on_crash && crash_signal::tell())
    }

    /// The descriptor of the log's file: in memory, or the dump. It is closed when the process ends or runs
    /// another program; whoever has a copy of it can still read the log then.
    #[cfg(unix)]
    #[must_use]
    pub fn log_fd(&self) -> Option<std::os::fd::BorrowedFd<'static>> {
        self.0.log.as_ref()?.fd()
    }

    /// The dump that is being written, if it is a file.
    #[must_use]
    pub fn dump_path(&self) -> Option<std::path::PathBuf> {
        self.0.log.as_ref()?.path()
    }

    /// Memory for code that is a growing object file: perf, debuggers that attach later, `dladdr` and unwinders in the
    /// process read from it what is announced of code that lies there, with no further step.
    ///
    /// `choose` may change the settings; the directory is [`Builder::arena_in`]'s. `None` if it cannot be had, which is
    /// said: then the runtime goes on with memory of its own.
    #[cfg(all(feature = "arena", unix))]
    #[must_use]
    pub fn code_arena(
        &self,
        choose: impl FnOnce(code_arena::Options) -> code_arena::Options,
    ) -> Option<code_arena::CodeArena> {
        let chosen = self.0.settings.arena_dir.clone();
        // Without a directory, one may still be chosen.
        let usual = chosen.map_or_else(crate::system::private_dir, Ok);
        let options = choose(code_arena::Options::new(usual.as_deref().unwrap_or(Path::new(""))));
        let made = match usual {
            Err(error) if !options.has_directory() => {
                Err(format!("no directory for the files of an arena: {error}"))
            }
            _ => code_arena::CodeArena::create(options).map_err(|error| error.to_string()),
        };
        made.map_err(|text| self.0.say(Subject::Arena, text)).ok()
    }

    /// Writes all code that is alive to the new file `path`, as an object that a loader takes: `dlopen` and `dlsym` run
    /// the same code in another process, as far as it refers to nothing outside of itself, and debuggers and
    /// disassemblers know it when this process is gone.
    ///
    /// The bytes are those in memory now. Symbols are the codes' names; of several codes with one name, `dlsym` finds
    /// the one announced last. Code that is announced or dropped meanwhile may or may not be in it. See the project's
    /// `docs/objects.md`.
    ///
    /// Unlike an announcement it takes its time, and fails where it cannot be done.
    ///
    /// # Errors
    /// [`ObjectError::Nothing`], [`ObjectError::Format`], [`ObjectError::File`]; the file is not there then, unless it
    /// was before.
    ///
    /// [`ObjectError::Nothing`]: crate::ObjectError::Nothing
    /// [`ObjectError::Format`]: crate::ObjectError::Format
    /// [`ObjectError::File`]: crate::ObjectError::File
    #[cfg(all(feature = "objects", unix))]
    pub fn write_object(
        &self,
        format: crate::ObjectFormat,
        path: impl AsRef<std::path::Path>,
    ) -> Result<crate::FinishedObject, crate::ObjectError> {
        let log = self.0.current().ok_or(crate::ObjectError::Nothing)?;
        crate::objects::write(log, format, path.as_ref())
    }

    fn begin(&self) {
        let shared = self.0;
        #[cfg(unix)]
        if shared.settings.watch && shared.log.is_some() {
            let watch = move || shared.watch();
            if let Err(error) = in_process::spawn("jitscribe", watch) {
                shared.say(Subject::Log, format_args!("no thread to wait for wishes: {error}"));
            }
        }
        if let Some(log) = &shared.log {
            Debuggers::put_up_signpost(log);
            if shared.settings.gdb_on_crash {
                crash::begin(shared);
            }
        }
        if let Some(directory) = &shared.settings.valgrind {
            shared.valgrind.begin(shared, directory.clone());
        }
        if shared.settings.unwinders {
            shared.unwinders.begin(shared);
        }
        self.poll();
    }
}

impl LoadedCode {
    /// Says that the code lies at the address of `bytes` now, with everything else as it was. Call it before
    /// it runs there.
    pub fn moved_to(&mut self, bytes: &[u8]) {
        self.moved(bytes.as_ptr().addr() as u64, Some(bytes));
    }

    /// [`Self::moved_to`] for code of which only the place is told, or that lies elsewhere than it runs.
    pub fn moved_to_address(&mut self, address: u64) {
        self.moved(address, None);
    }

    /// Whether this is no handle of a code that is alive: one that was made by [`Self::from_raw`] from the number of a
    /// code that has moved or is gone since, or that was left out of a fork's child for want of room. It does nothing.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        let log = self.shared.current().zip(self.position);
        log.is_some_and(|(log, position)| log.living(position, self.index).is_none())
    }

    fn moved(&mut self, address: u64, bytes: Option<&[u8]>) {
        let Some((log, position, living)) = self.living() else { return };
        let new = log.move_to(position, self.index, address, bytes, thread::id());
        self.shared.perf_maps.moved(log, position, self.index, address);
        self.shared.valgrind.moved(log, position, self.index, address);
        self.shared.debuggers.unload(log, position, self.index);
        self.shared.unwinders.moved(log, (position, self.index), new);
        if let Some((position, index)) = new {
            arenas::load_from(log, position, index);
            self.shared.debuggers.load_from(log, position, index);
        }
        log.end(living);
        self.position = new.map(|(position, _)| position);
        self.index = new.map_or(0, |(_, index)| index);
        if new.is_none() {
            self.shared.full();
        }
    }

    /// The log and the place of the code in it, if it has not died.
    #[inline]
    fn living(&self) -> Option<(&'static Log, Position, Living<'static>)> {
        let (log, position) = self.shared.current().zip(self.position)?;
        Some((log, position, log.living(position, self.index)?))
    }

    /// The code lives as long as the process.
    pub fn keep(self) {
        let _ = self.into_raw();
    }

    /// The handle as a number, for those who keep it in a place of their own. 0 if nothing was written.
    #[must_use = "the code stays announced until `from_raw` gets it back"]
    pub fn into_raw(self) -> u64 {
        let position = self.position.map_or(0, NonZeroU32::get);
        let raw = u64::from(position) << 32 | u64::from(self.index);
        std::mem::forget(self);
        raw
    }

    /// The handle that [`Self::into_raw`] gave as a number. Of a code that is gone, or of none at all, it does
    /// nothing: see [`Self::is_stale`].
    pub fn from_raw(scribe: Scribe, raw: u64) -> Self {
        let position = NonZeroU32::new((raw >> 32) as u32);
        Self { shared: scribe.0, position, index: raw as u32 }
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        if let Some((log, position, living)) = self.living() {
            self.shared.perf_maps.unload(log, position, self.index);
            self.shared.valgrind.unload(log, position, self.index);
            self.shared.unwinders.unload(log, position, self.index);
            self.shared.debuggers.unload(log, position, self.index);
            log.end(living);
        }
    }
}

impl Shared {
    #[inline]
    fn control(&self) -> u32 {
        self.log.as_ref().map_or(0, |log| log.control().load(Relaxed))
    }

    /// The log, of this process and not of the one it was forked from.
    #[inline]
    fn current(&self) -> Option<&Log> {
        let log = self.log.as_ref()?;
        match &self.alive {
            Some(page) if page.word().load(Relaxed) == KNOWN => Some(log),
            Some(page) => self.after_fork(log, page),
            None => {
                let pid = crate::log::process_id();
                (pid == self.pid.load(Relaxed) || self.adopt(log)).then_some(log)
            }
        }
    }

    #[cold]
    fn after_fork<'l>(&self, log: &'l Log, page: &ForkPage) -> Option<&'l Log> {
        loop {
            match page.word().load(Acquire) {
                KNOWN => return Some(log),
                ORPHAN => return None,
                0 => {
                    if page.word().compare_exchange(0, ADOPTING, AcqRel, Relaxed).is_ok() {
                        let state = if self.adopt(log) { KNOWN } else { ORPHAN };
                        page.word().store(state, Release);
                    }
                }
                _ => std::thread::yield_now(),
            }
        }
    }

    fn adopt(&self, log: &Log) -> bool {
        thread::forget_ids();
        self.obeying.reset();
        self.pid.store(crate::log::process_id(), Relaxed);
        match log.adopt() {
            Ok(()) => {
                self.perf_maps.forked();
                self.valgrind.forked();
                self.debuggers.forked(log);
                self.unwinders.forked();
                if self.settings.gdb_on_crash {
                    crash::forked(self);
                }
                true
            }
            Err(failure) => {
                self.say(Subject::Fork, format_args!("{failure}; this process announces no code"));
                false
            }
        }
    }

    fn load(&'static self, code: &Code<'_>) -> LoadedCode {
        // Made where it is returned: one that is not is dropped, and that is no small matter.
        let nothing = || LoadedCode { shared: self, position: None, index: 0 };
        let Some(log) = self.current() else { return nothing() };
        let mut wanted = log.control().load(Relaxed);
        if wanted & control::WISH != 0 {
            self.obey();
            wanted = log.control().load(Relaxed);
        }
        if wanted & control::LOG == 0 {
            return nothing();
        }
        let written = log.load(code, wanted & control::BYTES != 0, thread::id());
        if wanted & (control::PERF_MAP | control::GDB) != 0
            || self.valgrind.is_on()
            || self.unwinders.is_on()
            || arenas::are_there()
        {
            self.publish(code, wanted, written);
        }
        match written {
            Some((position, index)) => LoadedCode { shared: self, position: Some(position), index },
            None => {
                self.full();
                nothing()
            }
        }
    }

    /// Passes a code on to those who are told beside the log. By itself: what stands in the way of an announcement that
    /// goes to nobody else, if only as room on the stack, is paid for by each.
    #[cold]
    #[inline(never)]
    fn publish(&self, code: &Code<'_>, wanted: u32, written: Option<Announced>) {
        if wanted & control::PERF_MAP != 0 && self.settings.perf_map {
            self.perf_maps.load(code);
        }
        if wanted & control::GDB != 0
            && let Some((position, index)) = written
        {
            self.debuggers.load(position, index, code);
        }
        arenas::load(code);
        if written.is_some() {
            self.unwinders.load(code);
        }
        self.valgrind.load(code);
    }

    /// Does what the control word asks for.
    #[cold]
    fn obey(&'static self) {
        let Some(log) = self.current() else { return };
        let mut is_new = false;
        if let Some(_obeying) = self.obeying.try_close() {
            while let wish @ control::WISH.. = log.control().load(Acquire) {
                let wanted = wish & !control::WISH;
                let is_on = wanted & control::LOG != 0;
                let was_on = self.settings.was_on.swap(is_on, Relaxed);
                if is_on != was_on {
                    log.paused(!is_on);
                }
                is_new = is_on && !was_on;
                if wanted & control::PERF_MAP != 0 && self.settings.perf_map {
                    self.perf_maps.begin(self, log);
                }
                if wanted & control::GDB != 0 {
                    self.debuggers.begin(log, self.settings.gdb_each);
                }
                let _ = log.control().compare_exchange(wish, wanted, AcqRel, Relaxed);
            }
        }
        if is_new && let Some(replay) = &self.settings.replay {
            replay(Scribe(self));
        }
    }

    /// Shows debuggers all that is alive, as if asked from outside.
    #[cfg(feature = "gdb")]
    pub(crate) fn show_all(&'static self) {
        let Some(log) = self.current() else { return };
        log.control().fetch_or(control::GDB | control::WISH, AcqRel);
        loop {
            self.obey();
            if log.control().load(Acquire) & control::WISH == 0 {
                return;
            }
            // Another thread is about it.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Where the perf map is kept, if not where perf looks for it.
    #[cfg(unix)]
    pub(crate) fn perf_map_dir(&self) -> Option<&Path> {
        self.settings.perf_map_dir.as_deref()
    }

    /// Waits for wishes, for ever.
    #[cfg(unix)]
    fn watch(&'static self) {
        use rustix::thread::futex;
        let Some(log) = self.current() else { return };
        let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        loop {
            let control = log.control().load(Acquire);
            if control & control::WISH != 0 {
                self.obey();
                continue;
            }
            let looks = self.settings.look_for_debuggers && control & control::GDB == 0;
            if looks && control & control::LOG != 0 && crate::system::is_traced() {
                log.control().fetch_or(control::GDB | control::WISH, AcqRel);
                continue;
            }
            // Interrupted, changed, woken or over: each time the word is looked at anew.
            let time = looks.then_some(&second);
            let _ = futex::wait(log.control(), futex::Flags::empty(), control, time);
        }
    }

    #[cold]
    fn full(&self) {
        if let Some(log) = &self.log
            && !self.said_full.swap(true, Relaxed)
        {
            let (taken, limit) = log.extent();
            let (taken, limit) = (taken >> 10, limit >> 10);
            self.say(
                Subject::Full,
                format_args!("the code log is full ({taken} KiB taken, the limit is {limit} KiB): new codes are left out until old ones die; JITSCRIBE_LIMIT sets another limit"),
            );
        }
    }

    pub(crate) fn say(&self, subject: Subject, text: impl std::fmt::Display) {
        notice::say(self.settings.listener.as_ref(), &Notice::new(subject, text));
    }
}
